"""Unmodified scripts: their large arrays in an arena, and what they touched as a trace."""
