"""Compiling policies: the class is the one source, its methods are compiled as they are written.

    source.py     a class's methods, rewritten for Numba; a digest of all that they depend on
    layout.py     attributes, as start() left them ⇄ one block of words; header.py is its beginning
    handles.py    Numba types of structures, memory and parts
    operations.py iteration.py policy_type.py   what can be done with them, and with ``self``
    gpu_surface.py tier_surface.py              what a mechanism shows as ``self.memory``
    primitives.py                               … down to words of the block
    compiler.py   all of it together: one C function ``int64 (block, event)``
    cache.py      compiled functions on disk, by digest; explain.py  why a class cannot be compiled

docs/compiled-policies.md says which Python is compiled.
"""
