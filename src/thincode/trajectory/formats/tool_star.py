r"""Tool-Star (Dong et al. 2025, arXiv 2505.16410; github.com/RUC-NLPIR/Tool-Star): thoughts, Python and search, all in tags.

    <think>Count the pairs.</think>
    <python>
    print(6 * 7)
    </python> <result>
    42
    </result><answer>\boxed{42}</answer>

Everything is one turn of the assistant, and ids of results are appended, as here. There is no search engine here: a `<search>` is
recorded, answered with words that say so, and counts as a call; in published transcripts its result is a notice, so no metric
takes it for an output. Three calls, then the authors force the end of the turn; here the model is told. Their helpers, which have
another model mend or roll back a failed call, are left out.
"""

from __future__ import annotations

from ...settings import settings
from . import Sheet
from ._tagged import Tagged

INSTRUCTION = (
    "Reason between <think> and </think>. To run Python, write the code between <python> and </python>; it knows no "
    "names of earlier code, and what it prints follows between <result> and </result>. Give the answer as "
    "<answer>\\boxed{answer}</answer>."
)
NO_SEARCH = "Search is not available. Go on with reasoning and Python."

SHEET = Sheet(
    system="Tool-Star",
    paper="arXiv 2505.16410",
    repository="github.com/RUC-NLPIR/Tool-Star",
    preset="tool_star",
    calls=3,
    context_tokens=5_632,
    unknown="where its interpreter cuts an output",
)


@settings
class Settings:
    """What a recipe may set."""

    instruction: str = INSTRUCTION
    """Follows the question in the prompt; empty for the bare question."""


def build(settings: Settings) -> Tagged:
    """The format."""
    return Tagged(
        name="tool_star",
        instruction=settings.instruction,
        code_tag="python",
        output_tag="result",
        before_output=" ",
        after_output="",
        refusals={"search": NO_SEARCH},
        thought_tag="think",
        closing="<answer>\\boxed{{{}}}</answer>",
    )
