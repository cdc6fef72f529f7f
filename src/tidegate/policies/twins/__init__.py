"""Compiled twins that are too long to stand beside their classes; see policies/interface/twin.py."""
