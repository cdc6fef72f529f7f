"""Functions whose calls matter here: those that launch kernels, allocate tasks, or allocate heap
objects, and which argument holds what.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.compiler.ir.libraries import LIBRARY_CALLS


@dataclass(frozen=True)
class EntryPoint:
    """Positions of a launching call's arguments."""

    region_id: int
    kernel_args: int | None = None  # clang 15 and newer: one structure holds all others
    arrays: int | None = None  # before: base pointers, pointers, sizes and map types, from here on
    teams: int | None = None  # the number of teams, followed by the threads of each
    parameters: int | None = None  # CUDA: an array of pointers to the kernel's parameters


ENTRY_POINTS: dict[str, EntryPoint] = {
    "__tgt_target_kernel": EntryPoint(4, kernel_args=5, teams=2),
    "__tgt_target_kernel_nowait": EntryPoint(4, kernel_args=5, teams=2),
    "__tgt_target_teams_mapper": EntryPoint(2, arrays=4),
    "__tgt_target_teams_nowait_mapper": EntryPoint(2, arrays=4),
    "__tgt_target_mapper": EntryPoint(2, arrays=4),
    "__tgt_target_nowait_mapper": EntryPoint(2, arrays=4),
    "cudaLaunchKernel": EntryPoint(0, parameters=5),
    "cudaLaunchCooperativeKernel": EntryPoint(0, parameters=5),
    "hipLaunchKernel": EntryPoint(0, parameters=5),
}

LAUNCHING = frozenset({*ENTRY_POINTS, *LIBRARY_CALLS})
"""All functions that launch kernels."""

CONFIGURES = ("__cudaPushCallConfiguration", "__hipPushCallConfiguration")
"""The calls that take a launch's grid and blocks, just before it."""
TAKES_CONFIGURATION = ("__cudaPopCallConfiguration", "__hipPopCallConfiguration")
"""The calls by which a stub finds them."""

ALLOCATES_TASK = ("__kmpc_omp_target_task_alloc", "__kmpc_omp_task_alloc")
"""The calls that allocate the task into which clang puts a region with `nowait`."""

# In __tgt_kernel_arguments, by byte; the same from clang 15 to 22.
BASES_AT, POINTERS_AT, MAP_TYPES_AT, TRIP_COUNT_AT = 8, 16, 32, 56

# Bits of a map type (openmp/libomptarget/include/omptarget.h).
POINTER_AND_OBJECT = 0x10  # the base is the pointer's address in a structure that is mapped, too
TARGET_PARAMETER = 0x20
LITERAL = 0x100  # the entry is the value itself, not its address


@dataclass(frozen=True)
class Allocator:
    """How to read a call of one allocating function."""

    sizes: tuple[int, ...]  # arguments whose product is the size in bytes, or in elements
    result: int | None = None  # argument through which the pointer is set; None: it is returned
    spelt: str = ""  # in the source, if not as in the IR
    extent: int | None = None  # argument that points to three lengths, whose product is the size
    element: int | None = None  # argument that points to a channel's bits: the size of an element


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
            "MallocFromPoolAsync": (1,),
            "MallocHost": (1,),
            "HostAlloc": (1,),
            "HostMalloc": (1,),
            "MallocPitch": (2, 3),
        }.items()
    },
    **{
        f"{api}{name}": allocator
        for api in ("cuda", "hip")
        for name, allocator in {
            "Malloc3D": Allocator((), result=0, extent=1),
            "MallocArray": Allocator((2, 3), result=0, element=1),
            "Malloc3DArray": Allocator((), result=0, extent=2, element=1),
            "MallocMipmappedArray": Allocator((), result=0, extent=2, element=1),
        }.items()
    },
}

FREES = ("free", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "cudaFree", "cudaFreeAsync", "hipFree")

UNMANAGED = {
    f"{api}{name}": f"{api}MallocManaged"
    for api in ("cuda", "hip")
    for name in (
        *("Malloc", "MallocAsync", "MallocFromPoolAsync", "MallocPitch", "Malloc3D"),
        *("MallocArray", "Malloc3DArray", "MallocMipmappedArray"),
        *("MallocHost", "HostAlloc", "HostMalloc"),
    )
}
"""The functions whose memory stays where it is, and the one to use instead so that it can be
placed.
"""

CHANNEL = ("cudaCreateChannelDesc", "hipCreateChannelDesc")
"""The calls that describe an array's elements: where to, and the bits of their four parts."""


@dataclass(frozen=True)
class PointerCall:
    """A call that stores a pointer which it is given."""

    to: int  # argument: where it is stored
    pointer: int  # argument: the pointer, or where it is found
    at: int | None = None  # byte behind `pointer` at which it is found; None: it is `pointer`


POINTER_CALLS: dict[str, PointerCall] = {
    f"{api}{name}": call
    for api in ("cuda", "hip")
    for name, call in {
        "HostGetDevicePointer": PointerCall(0, 1),
        "GetSymbolAddress": PointerCall(0, 1),
        # a resource has its kind, then the pointer or array
        "CreateTextureObject": PointerCall(0, 1, at=8),
        "CreateSurfaceObject": PointerCall(0, 1, at=8),
    }.items()
}
