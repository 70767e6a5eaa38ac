"""Metrics. Each public module here is a kind with `Settings` and `measure(settings, rows) -> estimates`."""
