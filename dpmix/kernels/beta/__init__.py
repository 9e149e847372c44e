"""Beta kernels on the public bounds, with gamma base measures."""
