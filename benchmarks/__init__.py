"""Measurements of tidegate's speed and memory: ``python -m benchmarks``.

One question per file; docs/performance.md has the answers.
"""
