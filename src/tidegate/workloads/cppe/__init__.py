"""The 23 applications of CPPE's Table II, one module each; ``kernel`` turns index functions into
touches.
"""
