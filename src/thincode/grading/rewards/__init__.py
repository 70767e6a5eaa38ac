"""Rewards. Each public module here is a kind with `Settings` and `reward(settings, graded) -> float`, a pure function."""
