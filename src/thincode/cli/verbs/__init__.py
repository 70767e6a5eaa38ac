"""A verb is a file here: `VERB` says how it is called and what it does; it calls `runs`, prints, and never computes."""
