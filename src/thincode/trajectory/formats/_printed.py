"""Makes text of the interpreter harmless, whatever the wire format."""

from __future__ import annotations

import re

NOTHING = "(no output)"

_LINE_BREAK = re.compile("\r\n?|[\u2028\u2029]")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for tab and line break, signs that turn the writing direction, lone surrogates."""
_FENCE = re.compile("`{3,}")
_SPECIAL = re.compile("<(?=[|｜])")


def harmless(printed: str) -> str:
    """Printed text that can't forge structure: no control characters, no run of three backticks, no `<|`.

    Ends without a line break; says "(no output)" if nothing shows. Doing it twice changes nothing. A tokenizer's own
    special tokens are broken by `Tokenizer.neutralize`; `<|` is broken here too, for engines whose tokenizer we don't have.
    """
    text = _UNPRINTABLE.sub("�", _LINE_BREAK.sub("\n", printed)).rstrip("\n")
    # Quotes, so that a reader still sees what was meant: indentation or a stray sign before it makes no fence of it.
    text = _FENCE.sub(lambda match: "'" * len(match[0]), text)
    text = _SPECIAL.sub("< ", text)
    return text if text.strip() else NOTHING
