"""Managed memory for PyTorch: an allocator, and a device that prefetches instead of copying.

Tensors that the plan sends out stay where they are in the address space. They are marked as
read-mostly, which lets the driver drop them without writing them back, and are prefetched before
they are used. Each tensor is an allocation of the driver's, which takes some microseconds; where
that is too slow, a pool over managed memory (RMM has one) can take the allocator's place.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch

ALLOCATOR = """#include <cuda_runtime_api.h>
#include <sys/types.h>

/* CUDA 13 takes a place as a structure, earlier versions take its number. */
#if CUDART_VERSION >= 13000
static struct cudaMemLocation place_of(int device) {
  struct cudaMemLocation place;
  place.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  place.id = device == cudaCpuDeviceId ? 0 : device;
  return place;
}
#define ADVISE(p, n, advice, device) cudaMemAdvise(p, n, advice, place_of(device))
#define PREFETCH(p, n, device, stream) cudaMemPrefetchAsync(p, n, place_of(device), 0, stream)
#else
#define ADVISE(p, n, advice, device) cudaMemAdvise(p, n, advice, device)
#define PREFETCH(p, n, device, stream) cudaMemPrefetchAsync(p, n, device, stream)
#endif

#ifdef __cplusplus
extern "C" {
#endif

static long long allocated; /* bytes; PyTorch allocates under a lock of its own */

void *tidegate_malloc(ssize_t size, int device, cudaStream_t stream) {
  void *found = 0;
  (void)device;
  (void)stream;
  if (size <= 0 || cudaMallocManaged(&found, (size_t)size, cudaMemAttachGlobal) != cudaSuccess)
    return 0;
  allocated += size;
  return found;
}

void tidegate_free(void *found, ssize_t size, int device, cudaStream_t stream) {
  (void)device;
  cudaStreamSynchronize(stream); /* kernels may still use it */
  cudaFree(found);
  allocated -= size;
}

long long tidegate_allocated(void) { return allocated; }

void tidegate_read_mostly(void *p, long long size, int device) {
  ADVISE(p, (size_t)size, cudaMemAdviseSetReadMostly, device);
}

void tidegate_prefetch(void *p, long long size, int device, cudaStream_t stream) {
  PREFETCH(p, (size_t)size, device, stream);
}

#ifdef __cplusplus
}
#endif
"""
_HOST = -1  # cudaCpuDeviceId


class ManagedDevice:
    """The GPU with managed memory. ``library``: the built allocator."""

    def __init__(self, near: int, library: Any, stream: Any, number: int):
        self.near, self.stream, self._library, self._number = near, stream, library, number
        self._library.tidegate_allocated.restype = ctypes.c_longlong
        self._away: dict[int, int] = {}  # bytes of what was sent out and not fetched, by address

    def free(self) -> int:
        """Return the bytes that may still be used."""
        return self.near - self._library.tidegate_allocated() + sum(self._away.values())

    def out(self, tensor: torch.Tensor) -> torch.Tensor:
        """Let the driver drop a tensor's pages: host memory has a copy from now on."""
        self.stream.wait_stream(torch.cuda.current_stream())
        where = _place(tensor)
        self._library.tidegate_read_mostly(*where, ctypes.c_int(self._number))
        self._prefetch(where, _HOST)
        self._away[where[0].value] = where[1].value
        return tensor.detach()

    def back(self, host: torch.Tensor) -> torch.Tensor:
        """Begin to fetch a tensor's pages."""
        where = _place(host)
        self._prefetch(where, self._number)
        self._away.pop(where[0].value, None)
        return host

    def wait(self, tensor: torch.Tensor) -> None:
        """Let the kernels that follow wait for the prefetches so far."""
        torch.cuda.current_stream().wait_stream(self.stream)

    def _prefetch(self, where: tuple[Any, Any], device: int) -> None:
        stream = ctypes.c_void_p(self.stream.cuda_stream)
        self._library.tidegate_prefetch(*where, ctypes.c_int(device), stream)


def _place(tensor: torch.Tensor) -> tuple[Any, Any]:
    """Return the address and the bytes of a tensor's storage, for a C function."""
    storage = tensor.untyped_storage()
    return ctypes.c_void_p(storage.data_ptr()), ctypes.c_longlong(storage.nbytes())


def use_managed_memory(near: int, nvcc: str = "nvcc") -> ManagedDevice:
    """Allocate all that PyTorch has on the GPU as managed memory; call it before any CUDA call."""
    folder = Path(tempfile.mkdtemp(prefix="managed-"))
    (folder / "allocator.cu").write_text(ALLOCATOR)
    built = folder / "allocator.so"
    words = [nvcc, "-shared", "-Xcompiler", "-fPIC", "-o", str(built), "allocator.cu"]
    subprocess.run(words, cwd=folder, check=True)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        str(built), "tidegate_malloc", "tidegate_free"
    )
    torch.cuda.memory.change_current_allocator(allocator)
    number = torch.cuda.current_device()
    return ManagedDevice(near, ctypes.CDLL(str(built)), torch.cuda.Stream(), number)
