"""The posteriors that counts of n records can give, and the laws by which one of them is released.

Curator and analyst both need them: the one to draw, the other to account for the draw.
"""
