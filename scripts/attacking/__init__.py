"""Attacks on what dpmix releases and enters, with the accuracy that they reach."""
