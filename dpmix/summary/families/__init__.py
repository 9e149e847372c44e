"""Kernels with their base measures, as the summary needs them; `family_of_fit` finds that of a fit."""
