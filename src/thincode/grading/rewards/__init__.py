"""Rewards. Each public module here is a kind with `Settings` and one pure function: `reward(settings, graded) -> float`, or, for a
process reward, `segment_rewards(settings, graded) -> Sequence[float]`, one number for each of the trajectory's segments.
"""
