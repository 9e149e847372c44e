"""Checks of a release against releases that the fitted model would give (methods, section 15)."""
