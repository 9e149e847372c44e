"""Independent oracles in plain numpy, scipy and mpmath, from the mathematics alone: they import nothing of dpmix."""
