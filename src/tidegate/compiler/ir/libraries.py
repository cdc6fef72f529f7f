"""CUDA's libraries: calls that launch kernels of which there is no source.

Which arguments are operands, and which of these are written, is in the libraries' documentation.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LibraryCall:
    """Positions of a call's operands."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]

    @property
    def operands(self) -> tuple[int, ...]:
        """All operands, in the order of the arguments."""
        return tuple(sorted({*self.reads, *self.writes}))


_BLAS = {  # by name without the type
    **dict.fromkeys(("axpy",), ((3, 5), (5,))),
    **dict.fromkeys(("copy",), ((2,), (4,))),
    **dict.fromkeys(("swap", "rot"), ((2, 4), (2, 4))),
    **dict.fromkeys(("dot", "dotu", "dotc"), ((2, 4), ())),
    **dict.fromkeys(("nrm2", "asum"), ((2,), ())),
    "scal": ((3,), (3,)),
    "gemv": ((5, 7, 10), (10,)),
    "symv": ((4, 6, 9), (9,)),
    "ger": ((4, 6, 8), (8,)),
    "trsv": ((5, 7), (7,)),
    "gemm": ((7, 9, 12), (12,)),
    "gemmStridedBatched": ((7, 10, 14), (14,)),
    "symm": ((6, 8, 11), (11,)),
    "syrk": ((6, 9), (9,)),
    "trsm": ((8, 10), (10,)),
    "geam": ((6, 9, 11), (11,)),
}
_RANDOM = ("", "Uniform", "UniformDouble", "Normal", "NormalDouble", "LongLong", "Poisson")

LIBRARY_CALLS: dict[str, LibraryCall] = {
    **{
        f"cublas{letter}{name}{version}": LibraryCall(*operands)
        for letter in "SDCZ"
        for name, operands in _BLAS.items()
        for version in ("", "_v2")
    },
    **{
        f"cublasI{letter}am{x}_v2": LibraryCall((2,), ()) for letter in "sdcz" for x in ("ax", "in")
    },
    "cublasGemmEx": LibraryCall((7, 10, 14), (14,)),
    "cublasSgemmEx": LibraryCall((7, 10, 14), (14,)),
    **{
        f"cufftExec{kind}": LibraryCall((1,), (2,))
        for kind in ("C2C", "Z2Z", "R2C", "C2R", "D2Z", "Z2D")
    },
    **{f"curandGenerate{kind}": LibraryCall((), (1,)) for kind in _RANDOM},
}
