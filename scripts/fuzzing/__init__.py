"""Mutation fuzzing of the command line: whatever is wrong with a file, dpmix says so in a sentence."""
