"""The figures of Beraha, Favaro and Rao (2024), made from specs: the package of scripts/reproduce."""
