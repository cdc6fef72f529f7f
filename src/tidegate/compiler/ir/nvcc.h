/* What nvcc declares for every CUDA source and clang's own headers lack. It is included first, so
   that programs written for nvcc compile. Only types and effects on memory count here: nothing of it
   is ever run. */
#ifdef __CUDACC__
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime.h>

/* clang knows managed variables of HIP only */
#undef __managed__
#define __managed__ __device__

/* CUDA's headers hide calls that are out of date behind a macro or have dropped them */
#define TIDEGATE_SAME(old, now) static inline cudaError_t old(void) { return now(); }
#if CUDART_VERSION >= 13000
TIDEGATE_SAME(cudaThreadSynchronize, cudaDeviceSynchronize)
TIDEGATE_SAME(cudaThreadExit, cudaDeviceReset)
#endif

/* min and max on the host, of the types that nvcc knows them for */
#define TIDEGATE_HOST(type)                                                         \
  static inline __host__ type min(type a, type b) { return b < a ? b : a; }         \
  static inline __host__ type max(type a, type b) { return a < b ? b : a; }
TIDEGATE_HOST(int)
TIDEGATE_HOST(unsigned int)
TIDEGATE_HOST(long)
TIDEGATE_HOST(unsigned long)
TIDEGATE_HOST(long long)
TIDEGATE_HOST(unsigned long long)
TIDEGATE_HOST(float)
TIDEGATE_HOST(double)
#define TIDEGATE_MIXED(a_type, b_type, type)                                                     \
  static inline __host__ type min(a_type a, b_type b) { return min((type)a, (type)b); }          \
  static inline __host__ type max(a_type a, b_type b) { return max((type)a, (type)b); }
TIDEGATE_MIXED(int, unsigned int, unsigned int)
TIDEGATE_MIXED(unsigned int, int, unsigned int)
TIDEGATE_MIXED(long, unsigned long, unsigned long)
TIDEGATE_MIXED(unsigned long, long, unsigned long)
TIDEGATE_MIXED(long long, unsigned long long, unsigned long long)
TIDEGATE_MIXED(unsigned long long, long long, unsigned long long)
TIDEGATE_MIXED(float, double, double)
TIDEGATE_MIXED(double, float, double)

/* Surfaces: Tidegate takes a call of tidegate_surface_… for an access to its first argument. */
extern "C" __device__ void tidegate_surface_read(unsigned long long surface, int x, int y, int z);
extern "C" __device__ void tidegate_surface_write(unsigned long long surface, int x, int y, int z,
                                                  const void *value);

#define TIDEGATE_SURFACE(dimension, position, x, y, z)                                            \
  template <class T>                                                                              \
  static __device__ T surf##dimension##read(cudaSurfaceObject_t surface, position,                \
                                            cudaSurfaceBoundaryMode = cudaBoundaryModeTrap) {     \
    T found = T();                                                                                \
    tidegate_surface_read(surface, x, y, z);                                                      \
    return found;                                                                                 \
  }                                                                                               \
  template <class T>                                                                              \
  static __device__ void surf##dimension##read(T *found, cudaSurfaceObject_t surface, position,   \
                                               cudaSurfaceBoundaryMode = cudaBoundaryModeTrap) {  \
    tidegate_surface_read(surface, x, y, z);                                                      \
  }                                                                                               \
  template <class T>                                                                              \
  static __device__ void surf##dimension##write(T value, cudaSurfaceObject_t surface, position,   \
                                                cudaSurfaceBoundaryMode = cudaBoundaryModeTrap) { \
    tidegate_surface_write(surface, x, y, z, &value);                                             \
  }
#define TIDEGATE_AT(...) __VA_ARGS__
TIDEGATE_SURFACE(1D, int x, x, 0, 0)
TIDEGATE_SURFACE(2D, TIDEGATE_AT(int x, int y), x, y, 0)
TIDEGATE_SURFACE(3D, TIDEGATE_AT(int x, int y, int z), x, y, z)
TIDEGATE_SURFACE(2DLayered, TIDEGATE_AT(int x, int y, int z), x, y, z)
#endif
