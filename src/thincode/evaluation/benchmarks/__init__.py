"""Benchmarks. Each public module here is a kind with `Settings` and `load(settings) -> problems`."""
