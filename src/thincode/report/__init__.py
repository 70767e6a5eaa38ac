"""What we show. Reads run folders only; imports no torch, no engine, no interpreter.

`build` turns run folders into one HTML file that opens from disk: no server, no network, no external script or font. `view`
serves the same page over folders that grow.
The text of trajectories is hostile input; on the page it is data, never markup and never code. What the page does not
promise: it measures nothing. Every figure on it stands in the run folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ._page import write

__all__ = ["build", "view"]


def build(folder: Path | Sequence[Path], out: Path | None = None, *, limit_bytes: int = 45_000_000) -> Path:
    """Write the page of a run, or of several beside each other.

    Args:
        folder: a run folder: of a pipeline, or of one of its steps (then the page says what is not there); or several.
        out: the file to write; `report.html` inside the (first) folder if None.
        limit_bytes: bytes of trajectories on the page; above it they are sampled, the same problems at every
            checkpoint, and the page says so.

    Returns:
        The file written.

    Raises:
        RunFolderError: no such folder, or nothing of a run in it.
        DataError: a file in it can't be read (file and line named).
    """
    folders = [folder] if isinstance(folder, (str, Path)) else folder
    return write([Path(one) for one in folders], None if out is None else Path(out), limit_bytes=limit_bytes)


def view(folders: Sequence[Path], *, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve the page of runs, with all of their trajectories, as the folders grow; until the process is interrupted.

    Args:
        folders: run folders, of which some may have just begun.
        host: address to listen on; of this machine only unless people ask for another.
        port: 0 takes any that is free.
        say: told the page's address when the server listens, and what to be aware of.

    Raises:
        RunFolderError: a folder is not there, or the address can't be listened on.
    """
    from ._server import serve

    serve([Path(folder) for folder in folders], host=host, port=port, say=say)
