"""The `thincode` command: verbs that call `runs`; it prints and never computes."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module

from ._verb import Verb

GROUPS = {
    "begin": ("demo", "recipes", "doctor"),
    "train": ("run", "sweep", "distill", "sft", "rl"),
    "data": ("data", "export", "model"),
    "score": ("eval", "solve", "grade", "measure", "compare", "scores", "inspect"),
    "look": ("report", "view"),
    "serve": ("interpreter",),
}
"""The verbs by what one does with them; each is a file in `verbs/`."""

NAMES = tuple(name for names in GROUPS.values() for name in names)


def verb(name: str) -> Verb:
    """What the file of a verb says of it."""
    found: Verb = import_module(f".verbs.{name}", __name__).VERB
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 when all went well, 1 for a fault of ours, 2 for a mistake the user can mend, 3 when infrastructure failed, 130
        after Ctrl-C.
    """
    verbs = {name: verb(name) for name in NAMES}
    parser = _parser(verbs)
    words, rest = parser.parse_known_args(argv)
    words.overrides = [word for word in rest if re.match(r"\w+(\.\w+)*=", word)]
    unknown = [word for word in rest if word not in words.overrides]
    chosen = verbs.get(words.verb)
    if unknown or (words.overrides and not (chosen and chosen.takes_overrides)):
        parser.error(f"can't understand {' '.join(unknown or words.overrides)}; try thincode {words.verb or ''} --help")
    if chosen is None:
        parser.print_help()
        return 0
    from ..errors import ThincodeError

    try:
        return chosen.run(words)
    except ThincodeError as error:
        print(f"thincode {words.verb}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        again = f"; go on with the same command, --out {words.out} and --resume" if chosen.long else ""
        print(f"\nthincode {words.verb}: stopped{again}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141


def _parser(verbs: dict[str, Verb]) -> argparse.ArgumentParser:
    from .. import __version__

    lines = "".join(
        f"{group * (name == names[0]):<6}{name:<12}{verbs[name].line}\n"
        for group, names in GROUPS.items()
        for name in names
    )
    parser = argparse.ArgumentParser(
        prog="thincode",
        usage="thincode VERB [key.path=value …]    `thincode VERB --help` says more",
        description=lines,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    # Listed nowhere: with the verbs they would not fit a screen, and everybody tries them.
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version=f"thincode {__version__}", help=argparse.SUPPRESS)
    places = parser.add_subparsers(dest="verb", prog="thincode", metavar="VERB", help=argparse.SUPPRESS)
    for name, verb in verbs.items():
        place = places.add_parser(
            name,
            usage=f"thincode {name} {verb.usage}",
            description=verb.description,
            epilog=_LONG_VERB if verb.long else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if verb.long:
            _add_long(place)
        if verb.add is not None:
            verb.add(place)
    return parser


_LONG_VERB = """\
key.path=value changes one setting, for example seed=2 or evaluate.samples=4.
Ctrl-C stops; the same command with the run's --out and --resume goes on."""


def _add_long(parser: argparse.ArgumentParser) -> None:
    from pathlib import Path

    add = parser.add_argument
    add("--out", type=Path, metavar="DIR", help="run folder to write (default: runs/VERB-DATE)")
    add("--plan", action="store_true", help="check and print every setting and where it came from; run nothing")
    add("--resume", action="store_true", help="go on where a run in --out stopped")
    add("--quiet", action="store_true", help="no progress")
    add("--json", action="store_true", help="progress and result as JSON lines")
