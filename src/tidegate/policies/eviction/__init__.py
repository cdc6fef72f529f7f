"""Eviction policies, one per file."""
