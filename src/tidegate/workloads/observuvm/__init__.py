"""The fourteen applications of ObservUVM's Table II, one module each; ``layers`` is what its two
networks have in common.
"""
