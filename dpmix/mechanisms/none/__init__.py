"""No mechanism: the records themselves."""
