"""Kernels with their base measures, as the summary needs them; `family_of_fit.family_of` finds that of a fit."""
