"""The record itself: addresses that give seeds, and what a trajectory says of its parts."""

from __future__ import annotations

from dataclasses import replace

from thincode.trajectory import Address, Block, BlockStatus, EndReason, Segment, SegmentKind, Trajectory

HOME = Address(run=1, stage="rl-1", step=2, problem="p", sample=3)


def test_a_seed_depends_on_every_part_of_the_address_and_on_nothing_else() -> None:
    others = [
        replace(HOME, run=2),
        replace(HOME, stage="rl-2"),
        replace(HOME, step=3),
        replace(HOME, problem="q"),
        replace(HOME, sample=4),
    ]
    seeds = [
        HOME.seed(),
        *(other.seed() for other in others),
        HOME.seed(0),
        HOME.seed("block", 0),
        HOME.seed("block", 1),
    ]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert HOME.seed("block", 1) == replace(HOME).seed("block", 1)


def test_the_key_leaves_the_run_out() -> None:
    assert HOME.key == replace(HOME, run=9).key
    assert HOME.key != replace(HOME, sample=9).key


def test_measured_seconds_make_no_record_differ() -> None:
    slow, quick = (
        Trajectory(
            HOME,
            "q",
            "thinc",
            "",
            (
                Segment(SegmentKind.CODE, "c", "c", block=Block(BlockStatus.OK, wall_s=seconds, cpu_s=seconds)),
                Segment(SegmentKind.OUTPUT, "o", "o"),
                Segment(SegmentKind.CODE, "d", "d"),
            ),
            EndReason.LOST,
            None,
            generate_s=seconds,
            execute_s=seconds,
        )
        for seconds in (1.0, 2.0)
    )
    assert slow == quick
    assert slow.text == "cod"
    assert [segment.text for segment in slow.blocks] == ["c"], "the second one never ran"
    assert [segment.text for segment in slow.outputs] == ["o"]
    assert slow.lost
