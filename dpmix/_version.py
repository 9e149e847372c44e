"""The version, on its own: nothing imports the package to know it."""

__version__ = "0.1.0"
