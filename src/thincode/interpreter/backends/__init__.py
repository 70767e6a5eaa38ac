"""Ways to run a block. Each public module here is a kind with `Settings` and `open(settings, *, limits)`."""
