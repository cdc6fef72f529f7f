/* The part of CUDA's runtime that the preload library and its test programs use: our own
   declarations, for cudart.c. CUDART_VERSION chooses between the signatures of 12 and 13. */

#pragma once
#include <stddef.h>

#ifndef CUDART_VERSION
#define CUDART_VERSION 12030
#endif

typedef enum {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101
} cudaError_t;
typedef struct stream *cudaStream_t;
typedef struct event *cudaEvent_t;
typedef struct { unsigned x, y, z; } dim3;
typedef struct {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  void *attrs;
  unsigned numAttrs;
} cudaLaunchConfig_t;
struct cudaPointerAttributes { int type; };
enum {
  cudaMemoryTypeUnregistered,
  cudaMemoryTypeHost,
  cudaMemoryTypeDevice,
  cudaMemoryTypeManaged
};
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
enum cudaMemoryAdvise {
  cudaMemAdviseSetReadMostly = 1,
  cudaMemAdviseUnsetReadMostly,
  cudaMemAdviseSetPreferredLocation,
  cudaMemAdviseUnsetPreferredLocation,
  cudaMemAdviseSetAccessedBy,
  cudaMemAdviseUnsetAccessedBy
};
enum { cudaMemAttachGlobal = 1, cudaEventDisableTiming = 2, cudaCpuDeviceId = -1 };
#define cudaStreamPerThread ((cudaStream_t)2)

cudaError_t cudaMalloc(void **at, size_t bytes);
cudaError_t cudaMallocManaged(void **at, size_t bytes, unsigned flags);
cudaError_t cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream);
cudaError_t cudaFree(void *at);
cudaError_t cudaFreeAsync(void *at, cudaStream_t stream);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaLaunchCooperativeKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *, void **);
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *found, const void *at);

#if CUDART_VERSION >= 13000
enum cudaMemLocationType { cudaMemLocationTypeDevice = 1, cudaMemLocationTypeHost = 2 };
struct cudaMemLocation { enum cudaMemLocationType type; int id; };
cudaError_t cudaMemPrefetchAsync(const void *at, size_t bytes, struct cudaMemLocation place,
                                 unsigned flags, cudaStream_t stream);
cudaError_t cudaMemAdvise(const void *at, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation place);
#else
cudaError_t cudaMemPrefetchAsync(const void *at, size_t bytes, int device, cudaStream_t stream);
cudaError_t cudaMemAdvise(const void *at, size_t bytes, enum cudaMemoryAdvise advice, int device);
#endif
