"""One trajectory in each wire format: the record, its text, and its ids with authors and both loss masks."""

from __future__ import annotations

import json

from chat_tokenizers import qwen_like
from thincode.settings import kind, kinds
from thincode.trajectory import Address, Author, Block, BlockStatus, EndReason, Segment, SegmentKind, Trajectory
from thincode.trajectory.formats import Converses, build
from thincode.trajectory.store import to_json
from thincode.trajectory.tokenizer import Tokenizer
from thincode.trajectory.tokens import encode, loss_mask

ROOM = "thincode.trajectory.formats"
QUESTION = "How many pairs x < y of positive integers have x + y = 10?"
PLAN = "Test every pair."
THOUGHTS = ["Collect the pairs.", "Count them."]
BLOCKS = ["pairs = [(x, 10 - x) for x in range(1, 10) if x < 10 - x]\npairs", "print(len(pairs))"]
PRINTED = ["[(1, 9), (2, 8), (3, 7), (4, 6)]\n", "4\n```\n<|end|>"]
ANSWER = "4"
OWN = {
    "thinc_gp": (
        ["p = [[x, 10 - x] | x <- [1..9], x < 10 - x]", "#p"],
        ["[[1, 9], [2, 8], [3, 7], [4, 6]]\n", PRINTED[1]],
    ),
    "thinc_named": (
        [
            'pairs = [x for x in range(1, 10) if x < 10 - x]\nn = len(pairs)\nprint(f"{n = }")',
            "assert n == 4\nprint(n)",
        ],
        ["n = 4\n", PRINTED[1]],
    ),
}
"""Blocks, and what they print, of formats that write others."""
MARKERS = ["```python\n", "```output\n", "```\n", "\\boxed{"]


def tokenizer() -> Tokenizer:
    return Tokenizer.train([QUESTION, PLAN, *THOUGHTS, *BLOCKS] * 3, vocab_size=300, markers=MARKERS)


def tokenizer_of(name: str) -> Tokenizer:
    """A small one; where outputs are turns of a tool, one whose chat template has words for them."""
    return qwen_like("chatml_tools") if isinstance(build(kind(ROOM, name)), Converses) else tokenizer()


def record(name: str) -> Trajectory:
    """The trajectory as the episode driver would make it from the teacher's turns."""
    format = build(kind(ROOM, name, instruction=""))
    segments: list[Segment] = []
    blocks, outputs = OWN.get(name, (BLOCKS, PRINTED))
    turns = format.teacher_turns(PLAN, THOUGHTS, blocks, ANSWER)
    printed = [f"{ANSWER}\n"] if len(turns) == 1 else outputs  # one program: what it prints is its value
    for number, turn in enumerate(turns):
        scanner = format.scanner()
        call = scanner.feed(turn) or scanner.finish()
        said = format.segments(turn, call=call, first=number == 0, last=call is None)
        if call is not None:
            body = format.output(printed[number])
            code = Segment(said[-1].kind, said[-1].text, said[-1].content, block=Block(BlockStatus.OK))
            said = [*said[:-1], code, Segment(SegmentKind.OUTPUT, body.text, body.body)]
        segments += said
    return Trajectory(
        address=Address(run=0, stage="golden", step=0, problem="pairs", sample=0),
        question=QUESTION,
        format=name,
        prompt="",
        segments=tuple(segments),
        end=EndReason.FINISHED,
        answer=format.answer(segments),
    )


def files() -> dict[str, str]:
    made = {}
    for name in kinds(ROOM):
        words = tokenizer_of(name)
        full = encode(record(name), build(kind(ROOM, name, instruction="")), words)
        tokens = full.tokens
        assert tokens is not None
        rows = zip(tokens.ids, tokens.author, loss_mask(tokens), loss_mask(tokens, train_outputs=True), strict=True)
        golden = {
            "record": to_json(full),
            "text": full.text,
            "tokens: id, piece, author, trained with m=0, trained with m=1": [
                f"{token} {words.decode([token])!r} {Author(author).name} {int(m0)} {int(m1)}"
                for token, author, m0, m1 in rows
            ],
        }
        made[f"wire_formats/{name}.json"] = json.dumps(golden, indent=1, ensure_ascii=False) + "\n"
    return made
