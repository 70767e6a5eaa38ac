"""Whether a text retells a program: which of the program's steps it names in words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache

_NAMED_BY: dict[str, str] = {
    "loop": r"loop\w*|iterat\w+|each|every|all|through|go over|run over|enumerat\w+|for\b",
    "condition": r"if|whether|check\w*|test\w*|when|satisf\w+|equals?|condition\w*|keep\w*|those|that have",
    "count": r"count\w*|increment\w*|increas\w+|tally|how many|number of",
    "add": r"add\w*|sum\w*|total\w*|plus|accumulat\w+",
    "subtract": r"subtract\w*|minus|differen\w+|less",
    "multiply": r"multipl\w+|times|product",
    "divide": r"divid\w+|quotient|division|tens?|ratio|split\w*|half",
    "remainder": r"remainder\w*|modul\w+|divisib\w+|units?|last digit|ones|split\w*",
    "power": r"power\w*|squar\w+|cub\w+|exponent\w*|raise\w*",
    "collect": r"list\w*|append\w*|collect\w*|store\w*|gather\w*|record\w*",
    "function": r"function\w*|defin\w+|helper",
    "solve": r"solv\w+|equation\w*|roots?",
    "simplify": r"simplif\w+|expand\w*|factor\w*",
    "sort": r"sort\w*|order\w*",
    "extreme": r"max\w*|min\w*|largest|smallest|greatest|least",
    "digits": r"digits?|characters?|string\w*",
    "print": r"print\w*|output\w*|display\w*|show\w*",
}
CONTROL = frozenset({"loop", "condition", "function", "count"})
"""Steps that make an algorithm of a formula."""
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.FloorDiv: "divide",
    ast.Mod: "remainder",
    ast.Pow: "power",
    ast.Add: "add",
}
_CALLS = {
    "sum": "add",
    "len": "count",
    "append": "collect",
    "list": "collect",
    "solve": "solve",
    "nsolve": "solve",
    "solveset": "solve",
    "simplify": "simplify",
    "expand": "simplify",
    "factor": "simplify",
    "sorted": "sort",
    "sort": "sort",
    "max": "extreme",
    "min": "extreme",
    "str": "digits",
    "print": "print",
}
_PATTERNS = {step: re.compile(rf"\b(?:{words})", re.IGNORECASE) for step, words in _NAMED_BY.items()}
_OTHERS = (ast.For, ast.While, ast.comprehension, ast.If, ast.IfExp, ast.AugAssign, ast.FunctionDef, ast.Lambda)
TELLING = frozenset({ast.Call, ast.BinOp, *_OTHERS})
"""Nodes that do one of the steps."""
_WORD = re.compile(r"\b\w{1,30}")
_PAIR = re.compile(
    "|".join(rf"\b{one}" for words in _NAMED_BY.values() for one in words.split("|") if " " in one), re.IGNORECASE
)
"""What the table above has of two words."""


def steps(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """What a program of these nodes does, in the words of the table above."""
    return frozenset(step for node in nodes for step in steps_of(node))


def steps_of(node: ast.AST) -> tuple[str, ...]:
    """What one node does."""
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
        return (_CALLS[name],) if name in _CALLS else ()
    if isinstance(node, ast.BinOp):
        return (_OPERATORS[type(node.op)],) if type(node.op) in _OPERATORS else ()
    return _other_steps_of(node) if isinstance(node, _OTHERS) else ()


def _other_steps_of(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.For() | ast.While() | ast.comprehension():
            return ("loop", "condition") if getattr(node, "ifs", None) else ("loop",)
        case ast.If() | ast.IfExp():
            return ("condition",)
        case ast.AugAssign(op=ast.Add(), value=ast.Constant(value=1)):
            return ("count",)
        case ast.AugAssign(op=op):
            return (_OPERATORS[type(op)],) if type(op) in _OPERATORS else ()
        case ast.FunctionDef() | ast.Lambda():
            return ("function",)
    return ()


def named(text: str) -> frozenset[str]:
    """The steps that a text names."""
    words = {*_WORD.findall(text), *_PAIR.findall(text)}
    return frozenset().union(*map(_named_by, words))


@lru_cache(maxsize=10_000)
def _named_by(word: str) -> frozenset[str]:
    """The steps that a word, or a pair of words, names from its beginning on."""
    return frozenset(step for step, pattern in _PATTERNS.items() if pattern.match(word))


def similarity(told: frozenset[str], done: frozenset[str]) -> float:
    """Share of a program's steps that a text names; 0 for a program without steps."""
    return len(told & done) / len(done) if done else 0.0
