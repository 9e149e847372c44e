"""Runs of chains: the runner, its checkpoints and progress, and the files of finished chains."""
