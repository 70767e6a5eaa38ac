"""Metrics. Each public module here is a kind with `Settings` and `measure(settings, rows) -> estimates`.

Lost trajectories are left out and counted; empty rows give undefined values; the order of rows changes nothing.
"""
