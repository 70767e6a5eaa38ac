"""Every error thincode raises on purpose, as a tree.

    ThincodeError
    ├── UserError              exit code 2; one message: place, value, rule, next step; never a traceback
    │   ├── RecipeError        a recipe or an override is wrong: unknown key or kind, wrong type, impossible value
    │   ├── DataError          a problem file, record or transcript is wrong (file, line)
    │   ├── ModelError         a model folder or tokenizer can't be used
    │   ├── AlarmError         training went wrong in a way the recipe set an alarm for; the run stopped, checkpointed
    │   ├── RunFolderError     a run folder exists, is missing, is newer than this version, or its checkpoint can't be read
    │   │   └── RunInUseError  another process writes there
    │   ├── IsolationError     sessions are less isolated than they must be on this machine
    │   └── MissingExtraError  an optional dependency is not installed
    └── InfrastructureError    exit code 3; our side failed, never the model's: lost blocks, dead engine, full disk
        ├── TooManyLostError   more blocks lost than the recipe allows; the run stopped, checkpointed
        └── GenerationLostError  an engine that serves others could not serve this one: its trajectory is lost

A block that fails is data, not an exception: see `thincode.interpreter.Status`.
"""

from __future__ import annotations


class ThincodeError(Exception):
    """Base of every error raised on purpose."""

    exit_code = 1


class UserError(ThincodeError):
    """The user can mend it; the message says how."""

    exit_code = 2


class RecipeError(UserError):
    """A recipe or a command-line override is wrong."""


class DataError(UserError):
    """An input file is wrong; the message names file and line."""


class ModelError(UserError):
    """A model folder or a tokenizer can't be used."""


class AlarmError(UserError):
    """Training went wrong: not finite, entropy gone, reward stuck. The message says what, and where the checkpoint is."""


class RunFolderError(UserError):
    """A run folder exists, is missing, or holds something this version can't read."""


class RunInUseError(RunFolderError):
    """Another process writes in the run folder."""


class IsolationError(UserError):
    """Sessions are less isolated here than the recipe demands, or than we accept unasked."""


class MissingExtraError(UserError):
    """An optional dependency is missing; the message gives the pip command."""

    def __init__(self, package: str, extra: str, needed_for: str) -> None:
        super().__init__(f"{needed_for} needs {package}, which is not installed: pip install 'thincode[{extra}]'")


def require(package: str, *, extra: str, needed_for: str) -> None:
    """Say before any work which extra a step needs.

    Raises:
        MissingExtraError: `package` is not installed.
    """
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise MissingExtraError(package, extra, needed_for)


class InfrastructureError(ThincodeError):
    """Our side failed: never counted as the model's error."""

    exit_code = 3


class TooManyLostError(InfrastructureError):
    """More blocks were lost, after retry, than the recipe allows."""


class GenerationLostError(InfrastructureError):
    """An engine that goes on serving others failed for one request, after all retries; its trajectory ends as lost."""
