"""What channels share: the functions that samplers ask for, and channels that serve several mechanisms."""
