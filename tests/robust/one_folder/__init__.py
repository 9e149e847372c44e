"""A folder beside those of `dpmix/models`, as one who adds a model writes it."""
