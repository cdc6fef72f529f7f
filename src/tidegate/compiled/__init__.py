"""Numba parts that every room may use: compiling and caching, array tables, intrinsics, bits,
Fenwick trees.
"""
