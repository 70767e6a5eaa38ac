"""Generated problem families. Each public module here is one family; see `_family.py` for what it must give."""
