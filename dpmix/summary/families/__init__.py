"""Kernels with their base measures, as the summary needs them; `choose.family_of` finds that of a fit."""
