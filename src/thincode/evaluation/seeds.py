"""The same figure at several seeds: its mean, and how far other seeds might lie.

Where a seed draws everything anew (model, samples, problems taught and problems asked), its figures are independent, and
Student's interval over seeds holds for other seeds and other problems. It is wide for few seeds, as it must be: between seeds
of one small model lies more than between most methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import Estimate, Scorecard
from .intervals import student, wilson
from .samples import estimate


def over_seeds(found: Sequence[Estimate], *, is_share: bool = True) -> Estimate:
    """One figure from the same figure of each seed, weighted by what was counted.

    Args:
        found: of each seed; where it is undefined it leaves the mean.
        is_share: cut the interval at 0 and 1 where the figure is a share; False for differences.

    Returns:
        n is the sum. Of a single seed it keeps that one's own interval, and the note says so.
    """
    known = [one for one in found if one.value is not None and one.n > 0]
    if not known:
        return replace(found[0], value=None, low=None, high=None, n=0)
    if len(known) == 1:
        return replace(known[0], note=_joined("one seed: the interval is over problems or trajectories", known[0].note))
    values, total = [one.value for one in known if one.value is not None], sum(one.n for one in known)
    over = f"interval over {len(known)} seeds"
    interval = student(values, [one.n for one in known])
    if is_share and known[0].unit in ("", "share of steps") and interval.low is not None and interval.high is not None:
        interval = replace(interval, low=max(interval.low, 0.0), high=min(interval.high, 1.0))
        if {*values} in ({0.0}, {1.0}):  # seeds that all say none, or all, would have an interval without width
            interval, over = (
                wilson(round(values[0] * total), total),
                "interval over what all seeds counted, as they agree",
            )
    note = _joined(over, "" if len(known) == len(found) else "undefined at the others")
    return estimate(known[0].name, interval, n=total, unit=known[0].unit, note=note)


def card_over_seeds(cards: Sequence[Scorecard], *, name: str) -> Scorecard:
    """Every figure that the scorecards of one arm's seeds have, over seeds; `details` has each seed's value."""
    names = dict.fromkeys(one.name for card in cards for one in card.estimates)
    by_name = [{one.name: one for one in card.estimates} for card in cards]
    absent = Estimate("", None)
    found = {key: [card.get(key, absent) for card in by_name] for key in names}
    estimates = [over_seeds([replace(one, name=key) for one in row]) for key, row in found.items()]
    values = {key: [one.value for one in row] for key, row in found.items()}
    problems, samples = sum(card.problems for card in cards), max(card.samples for card in cards)
    return Scorecard(name, problems, samples, tuple(estimates), {"by_seed": values})


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
