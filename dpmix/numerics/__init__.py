"""Numbers that compiled code needs and no library gives it: dispatch, special functions, factors, streams."""
