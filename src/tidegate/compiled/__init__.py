"""Numba parts that every room may use: caching, array tables, intrinsics, bits, Fenwick trees."""
