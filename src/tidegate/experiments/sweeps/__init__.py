"""Sweeps: many runs, on one machine or a cluster, with a store of their figures."""
