"""Placement policies over three tiers, one per file."""
