"""Files, standard input and simulations, as checked tables."""
