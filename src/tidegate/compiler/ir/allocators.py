"""The functions that allocate heap objects: how to read size and pointer of their calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Allocator:
    """How to read a call of one allocating function."""

    sizes: tuple[int, ...]  # arguments whose product is the size in bytes
    result: int | None = None  # argument through which the pointer is set; None: it is returned
    spelt: str = ""  # in the source, if not as in the IR


ALLOCATORS: dict[str, Allocator] = {
    "malloc": Allocator((0,)),
    "calloc": Allocator((0, 1)),
    "realloc": Allocator((1,)),
    "aligned_alloc": Allocator((1,)),
    "memalign": Allocator((1,)),
    "posix_memalign": Allocator((2,), result=0),
    "_Znwm": Allocator((0,), spelt="new"),
    "_Znam": Allocator((0,), spelt="new"),  # new[]
    "_ZnwmSt11align_val_t": Allocator((0,), spelt="new"),
    "_ZnamSt11align_val_t": Allocator((0,), spelt="new"),
    "_ZnwmRKSt9nothrow_t": Allocator((0,), spelt="new"),
    "_ZnamRKSt9nothrow_t": Allocator((0,), spelt="new"),
    "omp_alloc": Allocator((0,)),
    "omp_calloc": Allocator((0, 1)),
    "omp_aligned_alloc": Allocator((1,)),
    "omp_target_alloc": Allocator((0,)),
    "llvm_omp_target_alloc_shared": Allocator((0,)),
    "llvm_omp_target_alloc_host": Allocator((0,)),
    "llvm_omp_target_alloc_device": Allocator((0,)),
    **{
        f"{api}{name}": Allocator(sizes, result=0)
        for api in ("cuda", "hip")
        for name, sizes in {
            "Malloc": (1,),
            "MallocManaged": (1,),
            "MallocAsync": (1,),
            "MallocHost": (1,),
            "HostAlloc": (1,),
            "HostMalloc": (1,),
            "MallocPitch": (2, 3),
        }.items()
    },
}

UNMANAGED = {
    f"{api}{name}": f"{api}MallocManaged"
    for api in ("cuda", "hip")
    for name in ("Malloc", "MallocAsync", "MallocPitch")
}
"""The functions whose memory stays near, and the one to use instead so that it can be placed."""
