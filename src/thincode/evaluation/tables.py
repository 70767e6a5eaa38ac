"""Scorecards as tables: for a terminal, a spreadsheet, a README, a paper."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence

from . import Estimate, Scorecard

_FIELDS = ("scorecard", "name", "value", "low", "high", "n", "unit", "note")
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def table(scorecards: Sequence[Scorecard]) -> list[list[str]]:
    """Rows of text for a terminal: a header, then one line an estimate with a column for each scorecard.

    Shares are in percent with their interval; what is undefined is a dash; with one scorecard n has a column of its own.
    """
    names = list(dict.fromkeys(one.name for card in scorecards for one in card.estimates))
    found = [{one.name: one for one in card.estimates} for card in scorecards]
    lines = [["", *(card.name for card in scorecards), *(["n"] if len(scorecards) == 1 else [])]]
    for name in names:
        cells = [text(card[name]) if name in card else "" for card in found]
        lines.append([name, *cells, *([str(found[0][name].n)] if len(scorecards) == 1 else [])])
    return lines


def text(one: Estimate) -> str:
    """An estimate in a few characters: `72.8 % [60.1, 80.2]`, `12.4 lines [11.0, 13.8]`, `–`."""
    if one.value is None:
        return "–"
    scale, unit, digits = (1.0, f" {one.unit}", 1) if one.unit else (100.0, " %", 1)
    if one.unit and abs(one.value) < 10:
        digits = 3
    ends = (
        "" if one.low is None or one.high is None else f" [{one.low * scale:.{digits}f}, {one.high * scale:.{digits}f}]"
    )
    return f"{one.value * scale:.{digits}f}{unit}{ends}"


def as_csv(scorecards: Sequence[Scorecard]) -> str:
    """One line an estimate, with everything an estimate has; shares as numbers from 0 to 1, what is undefined empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_FIELDS)
    for card in scorecards:
        for one in card.estimates:
            writer.writerow([card.name, *(getattr(one, field) for field in _FIELDS[1:])])
    return out.getvalue()


def as_markdown(scorecards: Sequence[Scorecard]) -> str:
    """A table with a column for each scorecard."""
    header, *lines = [[cell.replace("|", "\\|") for cell in line] for line in table(scorecards)]
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *lines))


def as_latex(scorecards: Sequence[Scorecard]) -> str:
    r"""Rows for a `tabular`, without the environment around them: `name & 72.8 [60.1, 80.2] \\`; shares in percent."""
    return "".join(" & ".join(map(_escape, line)) + r" \\" + "\n" for line in table(scorecards))


def _escape(cell: str) -> str:
    plain = re.sub(r"[\\~^]", lambda found: _LATEX[found.group()], cell)
    return re.sub(r"(?<!\\)([&%$#_])", r"\\\1", plain).replace("–", "--").replace("×", r"$\times$")


STYLES: Mapping[str, Callable[[Sequence[Scorecard]], str]] = {
    "csv": as_csv,
    "markdown": as_markdown,
    "latex": as_latex,
}
"""What a scorecard can be written as, besides its own JSON."""
