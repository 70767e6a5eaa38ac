"""YAML's traps: what is a number, what is text, what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincode.errors import RecipeError
from thincode.settings import read_yaml, write_yaml

SCALARS: list[tuple[str, Any]] = [
    ("1e-5", 1e-5),
    ("7E-6", 7e-6),
    ("-1.5e+3", -1500.0),
    ("1.", 1.0),
    (".5", 0.5),
    ("-.inf", -math.inf),
    ("16_384", 16384),
    ("+3", 3),
    ("012", 12),
    ("off", "off"),
    ("yes", "yes"),
    ("No", "No"),
    ("true", True),
    ("TRUE", "TRUE"),
    ("1:30", "1:30"),
    ("0x1F", "0x1F"),
    ("2026-05-07", "2026-05-07"),
    ("1.2.3", "1.2.3"),
    ("e5", "e5"),
    ("~", None),
    ("null", None),
    ("", None),
    ("'1e-5'", "1e-5"),
    ("<<", "<<"),
]


@pytest.mark.parametrize(("text", "value"), SCALARS)
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    found = read_yaml(f"key: {text}", place="recipe")["key"]
    assert found == value
    assert type(found) is type(value)


REFUSED = [
    ("a: 1\nb: 2\na: 3", r"recipe:3:1: .*key 'a' stands twice"),
    ("x: {a: 1, a: 1}", r"recipe:1:11: .*key 'a' stands twice"),
    ("a:\n\tb: 1", r"recipe:2:1: .*a tab stands where only spaces may"),
    ("a: &x 1\nb: *x", r"recipe:1:4: .*anchors and aliases"),
    ("a: *x", r"recipe:1:4: .*anchors and aliases"),
    ("a: !!python/object:os.system 1", r"recipe:1:4: .*the tag .*os.system' is not read"),
    ("a: !!timestamp 2026-01-01", r"recipe:1:4: .*tag"),
    ("a: !mine 1", r"recipe:1:4: .*the tag '!mine' is not read"),
    ("? [a]\n: 1", r"recipe:1:3: .*is no key"),
    ("a: [1, 2", r"recipe:1:9: can't read this as YAML"),
    ("a: 1\n---\nb: 2", r"recipe:2:1: .*another document"),
    ("a: b: c", r"recipe:1:5: "),
    ("a: \x00", r"recipe.*can't read this as YAML"),
    ("[" * 3000, r"recipe.*can't read this as YAML"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text[:12] for text, _ in REFUSED])
def test_what_is_refused_has_file_line_and_column(text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        read_yaml(text, place="recipe")


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@given(st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)))
def test_what_is_written_reads_back_equal(value: Any) -> None:
    assert read_yaml(write_yaml(value), place="written") == value


@given(st.text())
def test_a_reader_of_yaml_1_1_sees_the_same_text(text: str) -> None:
    import yaml

    assert yaml.safe_load(write_yaml({"key": text}))["key"] == text


def test_a_value_that_stands_twice_is_written_twice() -> None:
    item = {"a": 1}
    assert "&" not in write_yaml([item, item])


def test_an_empty_document_is_none() -> None:
    assert read_yaml("# nothing\n", place="recipe") is None
