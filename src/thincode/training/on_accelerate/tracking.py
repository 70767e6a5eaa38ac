"""Figures of a run in tensorboard, trackio or wandb, through accelerate's own trackers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import require
from .loop import Tracker


class Trackers:
    """Those a recipe names, all at once; none is a valid number."""

    def __init__(self, names: Sequence[Tracker], *, folder: Path, recipe: Mapping[str, Any]) -> None:
        """Begin a run in each.

        Args:
            names: which.
            folder: the run's; files of tensorboard lie below it, and its name is the run's.
            recipe: what the run is told, for their pages.

        Raises:
            MissingExtraError: one of them is not installed.
        """
        self._open: list[Any] = []
        for name in names:
            require(name.value, extra=name.value, needed_for=f"rl.trackers: {name.value}")
        if not names:
            return
        from accelerate.state import PartialState
        from accelerate.tracking import LOGGER_TYPE_TO_CLASS

        PartialState()
        for name in names:
            tracker = LOGGER_TYPE_TO_CLASS[name.value]
            place = {"logging_dir": str(folder)} if tracker.requires_logging_directory else {"name": folder.name}
            opened = tracker(name.value if tracker.requires_logging_directory else "thincode", **place)
            opened.start()
            opened.store_init_configuration(dict(_flat(recipe)))
            self._open.append(opened)

    def log(self, record: Mapping[str, Any], *, step: int) -> None:
        """Every number in the record, nested ones as `outer/inner`."""
        if self._open:
            numbers = {key: value for key, value in _flat(record) if type(value) in (int, float) and key != "step"}
            for tracker in self._open:
                tracker.log(numbers, step=step)

    def close(self) -> None:
        """End the run in each."""
        for tracker in self._open:
            tracker.finish()


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value if isinstance(value, (int, float, str)) else str(value)
