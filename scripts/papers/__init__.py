"""The figures and tables of five papers, made from specs: the package of scripts/reproduce."""
