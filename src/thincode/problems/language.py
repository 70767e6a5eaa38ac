"""Whether a text is English: by its letters first, then by the little words that every English sentence holds."""

from __future__ import annotations

import re

_HAN_KANA_HANGUL = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]")
_NOT_PROSE = re.compile(r"\$[^$]*\$|\\\[.*?\\\]|\\\(.*?\\\)|\\[A-Za-z]+|\[asy\].*?\[/asy\]", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]{2,}")
_LITTLE = frozenset((
    "a", "all", "an", "and", "are", "as", "at", "be", "by", "can", "compute", "each", "find", "for", "from", "has",
    "have", "how", "if", "in", "into", "is", "it", "its", "let", "many", "number", "numbers", "of", "on", "one",
    "print", "so", "such", "than", "that", "the", "their", "then", "there", "this", "to", "two", "use", "using",
    "value", "we", "what", "when", "where", "which", "who", "with",
))  # fmt: skip
_ENOUGH_WORDS = 12
_SHARE = 0.1


def is_english(text: str) -> bool:
    """Whether a text is in English; mathematics, code and names pass, and so does what is too short to tell.

    No Chinese, Japanese or Korean sign; at most one letter in ten outside ASCII; and, in a text of 12 words or more beside its
    formulas, at least one in ten a little word of English.
    """
    if not text.isascii():
        if _HAN_KANA_HANGUL.search(text):
            return False
        letters = [sign for sign in text if sign.isalpha()]
        if sum(not sign.isascii() for sign in letters) * 10 > len(letters):
            return False
    words = _WORD.findall(_NOT_PROSE.sub(" ", text).lower())
    return len(words) < _ENOUGH_WORDS or sum(map(_LITTLE.__contains__, words)) >= _SHARE * len(words)
