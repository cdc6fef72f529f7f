"""How quick tidegate is: ``python -m benchmarks``.

One question per file; docs/performance.md has the answers.
"""
