"""Tutorials as a newcomer goes through them: their files, commands and outputs."""
