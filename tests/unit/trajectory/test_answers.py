"""Where each system looks for the answer, case by case."""

from __future__ import annotations

import pytest

from thincode.settings import kind
from thincode.trajectory import Block, BlockStatus, Segment, SegmentKind
from thincode.trajectory.formats import Concludes, Thinks, build

ROOM = "thincode.trajectory.formats"
FINAL = "<|end|><|start|>assistant<|channel|>final<|message|>"

CASES = [
    ("cot", "<think>\\boxed{1}", "1"),
    ("cot", "<think>\\boxed{1}</think>none", "1"),
    ("qwen3_thinking", "<think>\n\\boxed{1}\n</think>\n\n\\boxed{2}", "2"),
    ("qwen3_thinking", "<think>\n\\boxed{1}\n</think>\n\nI can't tell.", None),
    ("qwen3_thinking", "<think>\n\\boxed{1} and so on", None),
    ("qwen3_thinking", "Without thinking: \\boxed{3}", "3"),
    ("r1_distill", "So \\boxed{1}, but it never ends", None),
    ("r1_distill", "So.\n</think>\n\n\\boxed{2}", "2"),
    ("r1_distill", "<think>\nSo.\n</think>\n\\boxed{2} or </think> \\boxed{4}", "4"),
    ("openreasoning", "<think>\n\\boxed{1}", None),
    ("gpt_oss", f"<|channel|>analysis<|message|>\\boxed{{1}}{FINAL}\\boxed{{2}}", "2"),
    ("gpt_oss", "<|channel|>analysis<|message|>\\boxed{1}", None),
    ("gpt_oss", "Headers were taken away: \\boxed{5}", "5"),
    (
        "gpt_oss",
        f"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>commentary<|message|>b{FINAL}\\boxed{{6}}",
        "6",
    ),
    ("prime", "\\boxed{1}, no, \\boxed{\\frac{1}{2}}", "\\frac{1}{2}"),
    ("oat_zero", "\\boxed{7}", "7"),
    ("dapo", "Answer: 3\nno\nAnswer: $4$", "4"),
    ("dapo", "Answer: \\boxed{12}", "12"),
    ("dapo", "Final Answer: 42", "42"),
    ("dapo", "Answer: 1\nSo the answer: $42$ \r\n", "42"),
    ("dapo", "Answer : 42", "42"),
    ("dapo", "ANSWER:\n42", "42"),
    ("dapo", "Answers: 42", None),
    ("dapo", "\\boxed{3}", None),
    ("dapo", "Answer:", None),
    ("dapo", "Answer: 3\n" + "a long remark. " * 30, None),
    ("cort", "\\boxed{1}", None),
    ("cort", "a\n```python\nx\n```\n```output\n1\n```\nb\n</think>\n\n\\boxed{2}", "2"),
    ("cort", "\\boxed{1}</think>", None),
    ("cort", "a </think>\n```python\nx\n```\n```output\n</think>\\boxed{9}\n```\n\\boxed{3}", "3"),
    ("simpletir", "```py\nx\n```\nCode execution result: \\boxed{8}\n\n", "8"),
    ("simpletir", "```py\nx\n```\nCode execution result: \\boxed{8}\n\nNo: \\boxed{9}", "9"),
    ("simpletir", "```py\nx\n```\nCode execution result: 1\n\nCode execution result: \\boxed{2}", "2"),
    ("simpletir", "So \\boxed{1}.\n```py\nx\n```\nCode execution result: 2\n\n", "1"),
    ("simpletir", "So \\boxed{1}.\n```py\nx\n```\nCode execution result: \\boxed{2}\n\n", "2"),
    ("tool_star", "<answer>\\boxed{1}</answer> or \\boxed{2}", "1"),
    ("tool_star", "<answer>the second</answer>", "the second"),
    ("tool_star", "\\boxed{2} <answer>", "2"),
    ("retool", "<answer>\n\\boxed{3}\n</answer>", "3"),
]


@pytest.mark.parametrize(("name", "text", "answer"), CASES)
def test_an_answer_is_looked_for_where_its_system_writes_it(name: str, text: str, answer: str | None) -> None:
    format = build(kind(ROOM, name))
    segments = format.parse(text)
    assert "".join(segment.text for segment in segments) == text
    assert format.answer(segments) == answer


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("So \\boxed{1}.\n```py\nx\n```\nCode execution result: 2\n\n", True),
        ("```py\nprint('\\\\boxed{1}')\n```\nCode execution result: NameError: x\n\n", True),
        ("```py\nx\n```\nCode execution result: \\boxed{2}\n\n", True),
        ("```py\nx\n```\nCode execution result: 2\n\n", False),
        ("So \\boxed{1}.\n```py\nx\n```\nNotice: no.\n\nHm.\n```py\nx\n```\nCode execution result: 2\n\n", False),
        ("So \\boxed{1}.\n```py\nx\n```\n", False),
    ],
)
def test_a_box_in_a_turn_of_simpletir_ends_the_trajectory_behind_its_block(text: str, over: bool) -> None:
    format = build(kind(ROOM, "simpletir"))
    assert isinstance(format, Concludes)
    assert format.concluded(format.parse(text)) is over


def test_oat_zeros_other_template_has_tags() -> None:
    format = build(kind(ROOM, "oat_zero", template="r1"))
    (taught,) = format.teacher_turns("Plan.", ["One."], [], "5")
    assert taught == "<think>\nOne.\n</think>\n\n<answer>5</answer>"
    assert format.answer(format.parse(taught)) == "5"
    assert format.answer(format.parse("<think>\n<answer>1</answer>")) is None


@pytest.mark.parametrize(("name", "opening"), [("qwen3_thinking", "<think>\n"), ("r1_distill", "")])
def test_who_opens_a_thought_is_a_setting(name: str, opening: str) -> None:
    for writes, begins in ((bool(opening), opening), (not opening, "" if opening else "<think>\n")):
        (taught,) = build(kind(ROOM, name, writes_opening=writes)).teacher_turns("Plan.", ["One."], [], "5")
        assert taught == f"{begins}One.\n</think>\n\n\\boxed{{5}}"


@pytest.mark.parametrize("name", ["qwen3_thinking", "r1_distill", "openreasoning", "gpt_oss", "cort"])
def test_a_thought_that_the_driver_closed_is_answered_behind(name: str) -> None:
    format = build(kind(ROOM, name))
    assert isinstance(format, Thinks)
    closing = format.close_thought()
    assert format.thought_end in closing.text
    (opening,) = [text.partition("One.")[0] for text in format.teacher_turns("", ["One."], [], "1")]
    said = format.segments(f"{opening}So \\boxed{{1}}", call=None, first=True, last=False)
    segments = [*said, Segment(SegmentKind.NOTICE, closing.text, closing.body)]
    assert format.answer(segments) is None
    segments += format.segments("It is \\boxed{2}.", call=None, first=False, last=True)
    assert format.answer(segments) == "2"


@pytest.mark.parametrize("name", ["pal", "pot"])
def test_a_program_that_failed_has_no_value(name: str) -> None:
    format = build(kind(ROOM, name))
    output = format.output("7")
    for status, answer in ((BlockStatus.OK, "7"), (BlockStatus.ERROR, None), (BlockStatus.LIMIT, None)):
        code = Segment(SegmentKind.CODE, "x\n", "x", block=Block(status))
        assert format.answer([code, Segment(SegmentKind.OUTPUT, output.text, output.body)]) == answer
