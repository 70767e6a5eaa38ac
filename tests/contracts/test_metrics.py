"""Every metric that ships: empty rows, one row, any order, lost rows left out, settings that come back."""

from __future__ import annotations

import copy
import pickle
import random

import pytest

from thincode.evaluation import Estimate
from thincode.evaluation.scorecard import look, measure, sum_up
from thincode.grading import Graded
from thincode.settings import dump, kind, kinds, parse
from thincode.trajectory import EndReason
from unit.evaluation.build import row

METRICS = "thincode.evaluation.metrics"
NAMES = kinds(METRICS)

ROWS = [
    row("a", "plan | 2+2 -> 4 | 4*1 -> 4 | so 4", correct=True, answer="4", gold="4", sample=0, tags={"family": "sum"}),
    row(
        "a",
        "plan | 1/0 !> ZeroDivisionError: x | 4 -> 4",
        correct=True,
        answer="4",
        gold="4",
        sample=1,
        tags={"family": "sum"},
    ),
    row("b", "plan | 1/0 !> ZeroDivisionError: x | loop #> stopped", gold="9", sample=0, tags={"family": "gcd"}),
    row("b", "all in words", answer="7", gold="9", sample=1, tags={"family": "gcd"}, tokens=True),
    row("c", "", gold="1", sample=0, end=EndReason.CONTEXT),
    row("c", "p | x -> 1,234 | text | y -> (1, 2) | e", answer="1234", gold="1", sample=1, tokens=True),
]
LOST = [row("a", "plan | 1 ?> ", sample=2, end=EndReason.LOST), row("z", "", sample=0, end=EndReason.LOST)]


def measured(name: str, rows: list[Graded]) -> list[Estimate]:
    return list(measure(rows, [kind(METRICS, name)], name="").estimates)


@pytest.mark.parametrize("name", NAMES)
def test_no_rows_give_undefined_values(name: str) -> None:
    estimates = measured(name, [])
    assert estimates
    assert {(one.value, one.low, one.high, one.n) for one in estimates} <= {
        (None, None, None, 0),
        (None, None, None, 1),
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("only", ROWS, ids=range(len(ROWS)))
def test_one_row_is_enough_and_any_value_lies_in_its_interval(name: str, only: Graded) -> None:
    for one in measured(name, [only]):
        assert (one.low is None) == (one.high is None)
        if one.low is not None:
            assert one.value is not None
            assert one.low <= one.value <= (one.high or 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_changes_nothing(name: str) -> None:
    expected = measured(name, ROWS)
    details = measure(ROWS, [kind(METRICS, name)], name="").details
    for seed in range(5):
        shuffled = random.Random(seed).sample(ROWS, len(ROWS))
        assert measured(name, shuffled) == expected
        assert measure(shuffled, [kind(METRICS, name)], name="").details == details


@pytest.mark.parametrize("name", NAMES)
def test_what_was_seen_can_be_sent_to_another_process(name: str) -> None:
    chosen = kind(METRICS, name)
    looked = [look(row, [chosen]) for row in ROWS + LOST]
    sent = pickle.loads(pickle.dumps(looked))
    assert sum_up(sent, [chosen], name="") == sum_up(looked, [chosen], name="")
    assert all(one.looks == (None,) for one in looked if one.row.lost)


@pytest.mark.parametrize("name", NAMES)
def test_lost_trajectories_change_no_value_but_are_counted(name: str) -> None:
    without, with_lost = measured(name, ROWS), measured(name, ROWS + LOST)
    same = [(one.name, one.value, one.n) for one in without if one.name != "end/lost"]
    assert [(one.name, one.value, one.n) for one in with_lost if one.name != "end/lost"] == same
    assert any("2 lost left out" in one.note for one in with_lost)


@pytest.mark.parametrize("name", NAMES)
def test_measuring_is_pure_and_names_are_unique(name: str) -> None:
    before = copy.deepcopy(ROWS)
    names = [one.name for one in measured(name, ROWS)]
    assert before == ROWS
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_written_and_read_back(name: str) -> None:
    chosen = kind(METRICS, name)
    assert parse(type(chosen.settings), dump(chosen.settings)) == chosen.settings
    assert len((chosen.module.__doc__ or "").splitlines()) >= 3


def test_every_metric_that_ships_is_here() -> None:
    assert {"accuracy", "grounding", "recovery", "code_use", "structure", "length"} <= set(NAMES)
