"""Tiering policies, one per file."""
