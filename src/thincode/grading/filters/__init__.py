"""Filters. Each public module here is a kind with `Settings` and `judge(settings, graded) -> Verdict`, a pure function."""
