"""Where problems come from. Each public module here is a kind: `problems: drills` in a recipe."""
