"""Tests of dpmix."""
