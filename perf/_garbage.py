"""A thousand answers that no one should send: huge, nested, endless, unbalanced, unprintable, written right to left."""

from __future__ import annotations

import random
from collections.abc import Iterator

_PIECES = [
    *(
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "\\frac{",
        "\\sqrt{",
        "\\text{",
        "\\left(",
        "\\right)",
        "\\begin{pmatrix}",
        "&",
        "\\\\",
    ),
    *(
        "10**10**10",
        "9^9^9^9",
        "!",
        "x^{999999}",
        "\\sum_{n=1}^{\\infty}",
        "\\int_0^1",
        "\\prod",
        "1e400",
        "-",
        "+",
        "*",
        "/",
    ),
    *(
        "\0",
        "\x1b[31m",
        "\u202e",
        "\u2066",
        "\ud800",
        "٣",
        "½",
        "∞",
        "NaN",
        "=",
        ",",
        ";",
        "$",
        "%",
        "\\%",
        "°",
        "\\pm",
        " or ",
    ),
    *(
        "7",
        "33",
        "1,234",
        "0.5",
        "x",
        "\\pi",
        "i",
        "\\circ",
        "\\cup",
        "\\infty",
        "and",
        "_8",
        "'",
        '"',
        "\n",
        "\t",
        "`",
        "# ",
    ),
]
_TOWERS = [
    "10**10**10",
    "10^{10^{10}}",
    "9^{9^{9^{9}}}",
    "((9!)!)!",
    "2^{2^{2^{2^{2^{2}}}}}",
    "(x+1)^{99999}",
    "e^{e^{e^{e^{9}}}}",
]
_HARD = ["\\sin(\\sin(x))^{40}", "(x+y+z+w)^{60}", "\\log(\\log(x))", "\\sqrt{x+\\sqrt{y+\\sqrt{z}}}", "\\tan(10^{20})"]


def answers(count: int, *, seed: int = 0) -> Iterator[tuple[str, str]]:
    """(name of its kind, answer), `count` of them in turn from ten kinds; the same seed gives the same ones."""
    rng = random.Random(seed)
    makers = [
        ("10 MB of digits", lambda: str(rng.randrange(1, 10)) * 10_000_000),
        ("10 MB of braces", lambda: rng.choice("{([") * 10_000_000),
        ("deep nesting", lambda: _nested(rng)),
        ("towers", lambda: rng.choice(_TOWERS) + rng.choice(["", "+1", "-x", "/3", ",2"])),
        ("hard algebra", lambda: "".join(f"{rng.choice('+-')}{rng.choice(_HARD)}" for _ in range(rng.randrange(1, 9)))),
        ("soup", lambda: "".join(rng.choices(_PIECES, k=rng.randrange(1, 120)))),
        ("near the length limit", lambda: "".join(rng.choices(_PIECES, k=1_500))[:3_999]),
        ("unprintable", lambda: "".join(chr(rng.randrange(0x3000)) for _ in range(rng.randrange(1, 400)))),
        ("long lists", lambda: rng.choice([",", ";", " and ", "\\cup"]).join(rng.choices(_PIECES, k=800))),
        ("long sums", lambda: rng.choice("+-*^=").join(str(rng.randrange(99)) for _ in range(rng.randrange(2, 1_300)))),
    ]
    for number in range(count):
        name, make = makers[number % len(makers)]
        yield name, make()


def _nested(rng: random.Random) -> str:
    opener, closer = rng.choice(
        [("{", "}"), ("(", ")"), ("\\frac{1}{", "}"), ("\\sqrt{", "}"), ("\\left[", "\\right]")]
    )
    depth = rng.randrange(10, 400)
    return opener * depth + "x" + closer * (depth - rng.choice([0, 0, 1]))
