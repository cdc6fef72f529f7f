"""Prefetch policies, one per file."""
