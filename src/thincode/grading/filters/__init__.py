"""Filters. Each public module here is a kind with `Settings`, and one of two functions.

`judge(settings, graded) -> Verdict` is pure and looks at one trajectory. `open(settings)` is for a filter that knows more than
that: it is called once for a corpus and returns a function `(graded) -> Verdict`, which is asked in the corpus's order.
"""
