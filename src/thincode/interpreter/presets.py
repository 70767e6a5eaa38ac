"""How other systems' interpreters behave, by name: what state they keep, when they stop a block, what they show of it.

A preset decides the time, memory and output limits; all else (isolation, processes, disk) is as without one. Sources are the
public repositories of the systems; wordings that those leave open are ours, and so is the rule that a limit in seconds holds
for CPU time and wall time both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from .._mistakes import choices
from ..errors import RecipeError
from . import Limits

_PRINTS = re.compile(r"^(?:(?:sp\.|sympy\.)?pprint|r?print).*\n?", re.MULTILINE)
"""A line that prints, as CoRT tells one."""


class Keeps(StrEnum):
    """What a block finds of the blocks before it."""

    ALL = "all"
    """A live session."""
    NOTHING = "nothing"
    """A fresh process for each block."""
    REPEATED = "repeated"
    """A fresh process for each block, in which all earlier blocks run first and silently, failed ones too."""
    REPEATED_GOOD = "repeated good"
    """The same, but without lines that print, without the blocks that failed, and without those that still print elsewhere."""


def as_written(code: str) -> str:
    """The block itself."""
    return code


def print_last_line(code: str) -> str:
    """Wrap the last line in `print(…)` by the look of the text, as verl's ReTool recipe does: also where that is no expression."""
    lines = code.rstrip().split("\n")
    if not lines[-1].startswith("print"):
        lines[-1] = f"print({lines[-1]})"
    return "\n".join(lines)


def print_solution(code: str) -> str:
    """PAL: the program's result is what its `solution` returns."""
    return f"{code}\nprint(solution())"


def print_ans(code: str) -> str:
    """PoT: the program's result is its variable `ans`; of a list or tuple the first item, of a dict the first value.

    The item is taken of the object, as its printed form may be no literal (`[sqrt(2), 3]`). Names come from `builtins`, since
    programs call their variables `list` or `next`.
    """
    first = "ans[0] if b.isinstance(ans, (b.list, b.tuple)) and ans else ans"
    return f"{code}\nimport builtins as b\nb.print(b.next(b.iter(ans.values())) if b.isinstance(ans, b.dict) and ans else {first})"


@dataclass(frozen=True)
class Preset:
    """One system's interpreter."""

    seconds: float
    """A block may take."""
    keeps: Keeps = Keeps.NOTHING
    shown_chars: int | None = None
    """Characters of an output that are shown, half of them from its end; None: all."""
    cut_mark: str = "..."
    """Stands for the middle that is not shown."""
    last_printed: bool = False
    """Of what a block printed only the last line is shown, without its line break."""
    last_line: bool = False
    """Of a failed block only the last line is shown: the exception and its message."""
    echo: bool = False
    """Whether a last line that is an expression shows its value."""
    out_of_time: str = ""
    """Shown of a block that was stopped for time; empty: our own words."""
    nothing_printed: str = ""
    """Shown of a block that printed nothing."""
    rewrite: Callable[[str], str] = as_written
    """What is run for a block."""
    prelude: str = ""
    """Runs first in every process."""
    memory_mib: int | None = None
    """None: as the limits say."""

    def limits(self, limits: Limits) -> Limits:
        """What the backend is told; the cut for the model is made here, after it."""
        return replace(
            limits,
            cpu_s=self.seconds,
            wall_s=self.seconds,
            memory_mib=self.memory_mib or limits.memory_mib,
            output_chars=1_000_000,
        )

    def source(self, code: str) -> str:
        """What is run for a block."""
        code = self.rewrite(code)
        return code if self.echo else f"{code}\npass"

    def earlier(self, ran: Sequence[tuple[str, bool]]) -> list[str]:
        """What runs before a block: of `ran`, each block as written and whether it ended well."""
        if self.keeps is Keeps.REPEATED:
            return [code for code, _ in ran]
        if self.keeps is Keeps.REPEATED_GOOD:
            silent = (_PRINTS.sub("", code) for code, good in ran if good)
            return [code for code in silent if "print" not in code]
        return []

    def show(self, output: str, *, failed: bool, detail: str) -> tuple[str, int]:
        """What the model sees, and how many characters were cut."""
        if failed and detail == "time" and self.out_of_time:
            output = self.out_of_time
        elif failed and self.last_line:
            output = output.rstrip().rpartition("\n")[2]
        if not output.strip():
            return self.nothing_printed, 0
        left_out = 0
        if self.last_printed and not failed:
            whole = output.strip()
            output = whole.rpartition("\n")[2].strip()
            left_out = len(whole) - len(output)
        if self.shown_chars is None or len(output) <= self.shown_chars:
            return output, left_out
        half = self.shown_chars // 2
        return f"{output[:half]}{self.cut_mark}{output[-half:]}", left_out + len(output) - 2 * half


_FINAL_ANSWER = r"def final_answer(result): print('\\boxed{' + str(result) + '}')"

_VERL = Preset(
    30, shown_chars=256, cut_mark="...(truncated)...", out_of_time="no stdout here", rewrite=print_last_line,
    memory_mib=1024,
)  # fmt: skip

_RSTAR2 = Preset(4, Keeps.REPEATED, shown_chars=256, cut_mark="...(truncated)...", echo=True)

PRESETS = {
    "aster": Preset(30, Keeps.ALL, echo=True, memory_mib=1024),
    "cir": Preset(5, shown_chars=400, last_line=True, out_of_time="Timeout Error"),
    "cort": Preset(30, Keeps.REPEATED_GOOD, shown_chars=800, out_of_time="Timeout Error"),
    "demyagent": replace(_VERL, memory_mib=2048),
    "pal": Preset(10, last_line=True, rewrite=print_solution),
    "pot": Preset(5, last_line=True, rewrite=print_ans),
    "qwen_tir": Preset(5, shown_chars=400, last_line=True, out_of_time="Timeout Error"),
    "retool": Preset(5, shown_chars=400, last_line=True, out_of_time="Timeout Error"),
    "rstar2": _RSTAR2,
    "rstar2_standard_io": replace(_RSTAR2, keeps=Keeps.NOTHING),
    "simpletir": Preset(4, shown_chars=512, last_line=True, prelude=_FINAL_ANSWER),
    "tool_star": Preset(5, last_line=True, out_of_time="Timeout Error"),
    "tora": Preset(
        5, shown_chars=100, last_printed=True, last_line=True, out_of_time="Timeout Error",
        nothing_printed="IndexError: list index out of range",
    ),  # it takes the last line of none: so in its code
    "torl": Preset(
        10, shown_chars=256, last_line=True, out_of_time="Timeout Error", nothing_printed="Timeout Error"
    ),  # an empty output is told as a time-out: so in its code
    "verl": _VERL,
}  # fmt: skip
"""Name → preset. `retool` is the authors' own; `verl` is its recipe in verl, on SandboxFusion. `rstar2` is the tool
`jupyter_code`. `qwen_tir` is Qwen2.5-Math's descendant of `tora`, whose wire format it shares."""

AS_IT_IS = Preset(0, Keeps.ALL, echo=True)
"""No system's: what a backend does by itself, under the limits that a recipe sets."""


def preset(name: str) -> Preset:
    """The preset of that name.

    Raises:
        RecipeError: there is none.
    """
    if name not in PRESETS:
        raise RecipeError(f"no preset {name!r}; {choices(name, sorted(PRESETS))}")
    return PRESETS[name]
