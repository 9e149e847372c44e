"""Kernels with their base measures, as summaries need them; `family_of_fit.family_of` finds that of a fit."""
