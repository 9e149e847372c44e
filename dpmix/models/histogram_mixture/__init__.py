"""Mixtures given a histogram of all records, or of groups of them: a sampler that works on counts alone.

The numbers of records in the bins are latent, and P, the mixing measure of each group, is drawn out in full:
a sweep costs bins times components whatever the number of records (methods, sections 12 and 16).
"""
