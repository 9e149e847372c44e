"""Mechanisms, one folder each: `curator.py` draws noise, `channel.py` is what inference sees."""
