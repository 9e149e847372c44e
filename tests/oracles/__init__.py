"""Independent oracles in numpy, scipy and mpmath, from the mathematics alone; they import no dpmix."""
