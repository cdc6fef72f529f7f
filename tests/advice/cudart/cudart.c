/* A CUDA runtime that keeps books instead of using a GPU.

   Kernels are functions of the host: they say what they use by `use`, and compute. Work is put off
   until somebody waits for it, and then streams run in the order that is worst: the newest first.
   What is near is counted, never limited, so that a peak is a fact of the calls. Arguments of a
   launch are values of eight bytes, and NULL ends them.

   The code that clang makes of CUDA C++ runs, too, with NAMES=1: kernels are noted and compute
   nothing.

   BOOKS names a file for what was done, in order, and the peak. FAIL=NAME:N lets the N-th call of
   that name fail. */

#include "cuda_runtime_api.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, MOST = 1 << 16, ARGUMENTS = 8, THREADS = 32 /* numbers of their streams */ };

static struct memory {
  char *at;
  size_t bytes;
  int managed;
  unsigned char *near, *far; /* of each page */
} memory[1024];
static struct work {
  enum { KERNEL, MOVE, RECORD, WAIT } kind;
  long stream;
  int done, to;
  void (*kernel)(void **);
  const char *name;
  size_t values[ARGUMENTS];
  struct memory *memory;
  size_t first, end;
  long record; /* the work that a wait waits for */
} work[MOST];
struct stream { long number; int captures; };
struct event { long record; };
static struct { const void *function; const char *name; } kernels[64];
static long n_work, n_memory, n_kernels, n_streams = 1, near_bytes, peak, faults, n_threads;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread cudaError_t last;
static __thread int device;
static __thread long own_stream;
static FILE *books;

__attribute__((constructor)) static void begin(void) {
  books = fopen(getenv("BOOKS") ? getenv("BOOKS") : "/dev/null", "w");
}
__attribute__((destructor)) static void end(void) {
  fprintf(books, "peak %ld\nfaults %ld\n", peak, faults);
  fclose(books);
}

static cudaError_t answer(cudaError_t error) {
  if (error)
    last = error;
  return error;
}

/* Whether this call is to fail. */
static int fails(const char *name) {
  static __thread char of[64];
  static long calls;
  const char *given = getenv("FAIL");
  if (!given || sscanf(given, "%63[^:]", of) != 1 || strcmp(of, name))
    return 0;
  return __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) == atol(strchr(given, ':') + 1);
}

static struct memory *memory_of(const void *at) {
  for (long n = 0; n < n_memory; n++)
    if (memory[n].at && (char *)at >= memory[n].at && (char *)at < memory[n].at + memory[n].bytes)
      return &memory[n];
  return NULL;
}

static void put(struct memory *m, size_t page, int near) {
  near_bytes += (near - m->near[page]) * PAGE;
  m->near[page] = (unsigned char)near;
  peak = near_bytes > peak ? near_bytes : peak;
}

/* A kernel uses these bytes: pages that are neither near nor advised to be far come by faults. */
void use(const void *at, size_t bytes) {
  struct memory *m = memory_of(at);
  size_t first = (size_t)((char *)at - m->at) / PAGE;
  for (size_t page = first; page * PAGE < (size_t)((char *)at - m->at) + bytes; page++)
    if (!m->near[page] && !m->far[page]) {
      put(m, page, 1);
      faults++;
    }
}

static void run(long n);

static void run_before(long n) { /* legacy default streams wait for others, and others for them */
  for (long k = 0; k < n; k++)
    if (!work[k].done && (work[k].stream == work[n].stream || !work[k].stream || !work[n].stream))
      run(k);
}

static void run(long n) {
  struct work *w = &work[n];
  void *arguments[ARGUMENTS];
  if (w->done)
    return;
  run_before(n);
  w->done = 1;
  if (w->kind == WAIT && w->record >= 0)
    run(w->record);
  if (w->kind == MOVE) {
    for (size_t page = w->first / PAGE; page * PAGE < w->end; page++)
      put(w->memory, page, w->to);
    fprintf(books, "%s %ld %zu %zu stream %ld\n", w->to ? "prefetch" : "evict",
            w->memory - memory, w->first, w->end, w->stream);
  }
  if (w->kind == KERNEL) {
    fprintf(books, "%s stream %ld\n", w->name, w->stream);
    for (int k = 0; k < ARGUMENTS; k++)
      arguments[k] = &w->values[k];
    if (!getenv("NAMES"))
      w->kernel(arguments);
  }
}

static void run_all(void) {
  for (long stream = THREADS + n_threads; stream >= 0; stream--)
    for (long n = 0; n < n_work; n++)
      if (work[n].stream == stream)
        run(n);
}

static long number_of(cudaStream_t stream) {
  if (stream != cudaStreamPerThread)
    return stream ? stream->number : 0;
  if (!own_stream)
    own_stream = THREADS + __atomic_add_fetch(&n_threads, 1, __ATOMIC_SEQ_CST);
  return own_stream;
}

static struct work *add(int kind, cudaStream_t stream) {
  struct work *w = &work[n_work++];
  w->kind = kind;
  w->stream = number_of(stream);
  return w;
}

/* Memory */

static cudaError_t allocate(void **at, size_t bytes, int managed) {
  pthread_mutex_lock(&lock);
  struct memory *m = &memory[n_memory];
  size_t pages = (bytes + PAGE - 1) / PAGE;
  *at = m->at = aligned_alloc(PAGE, pages * PAGE);
  m->bytes = bytes, m->managed = managed;
  m->near = calloc(pages, 1), m->far = calloc(pages, 1);
  for (size_t page = 0; page < pages && !managed; page++)
    put(m, page, 1);
  fprintf(books, "%s %ld %zu\n", managed ? "managed" : "device", n_memory++, bytes);
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void **at, size_t bytes) {
  *at = NULL;
  if (fails("cudaMalloc"))
    return answer(cudaErrorMemoryAllocation);
  return bytes ? allocate(at, bytes, 0) : cudaSuccess;
}
cudaError_t cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream) {
  (void)stream;
  return allocate(at, bytes, 0);
}
cudaError_t cudaMallocManaged(void **at, size_t bytes, unsigned flags) {
  if (!bytes || flags != cudaMemAttachGlobal)
    return answer(cudaErrorInvalidValue);
  return fails("cudaMallocManaged") ? answer(cudaErrorMemoryAllocation) : allocate(at, bytes, 1);
}

cudaError_t cudaFree(void *at) {
  pthread_mutex_lock(&lock);
  struct memory *m = memory_of(at);
  if (at && (!m || m->at != at)) {
    pthread_mutex_unlock(&lock);
    return answer(cudaErrorInvalidValue);
  }
  if (m && !m->managed)
    run_all(); /* whether this waits for managed memory's kernels is not promised */
  for (size_t page = 0; m && page * PAGE < m->bytes; page++)
    put(m, page, 0);
  if (m)
    m->at = NULL;
  free(at);
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *at, cudaStream_t stream) {
  struct memory *m = memory_of(at);
  (void)stream;
  return !m || m->managed ? answer(cudaErrorInvalidValue) : cudaFree(at);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *found, const void *at) {
  struct memory *m = memory_of(at);
  found->type = !m           ? cudaMemoryTypeUnregistered
                : m->managed ? cudaMemoryTypeManaged
                             : cudaMemoryTypeDevice;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  (void)kind;
  cudaDeviceSynchronize();
  memcpy(to, from, bytes);
  return cudaSuccess;
}

static cudaError_t move(const void *at, size_t bytes, int to, cudaStream_t stream) {
  pthread_mutex_lock(&lock);
  struct memory *m = memory_of(at);
  int wrong = !m || !m->managed || (char *)at + bytes > m->at + m->bytes || !bytes;
  if (!wrong) {
    struct work *w = add(MOVE, stream);
    w->memory = m, w->to = to >= 0;
    w->first = (size_t)((char *)at - m->at), w->end = w->first + bytes;
  }
  pthread_mutex_unlock(&lock);
  if (fails("cudaMemPrefetchAsync"))
    return answer(cudaErrorInvalidDevice);
  return wrong ? answer(cudaErrorInvalidValue) : cudaSuccess;
}

static cudaError_t advise(const void *at, size_t bytes, int advice, int to) {
  static const char *const SAID[] = {"",       "read-mostly",  "unset read-mostly",
                                     "prefer", "unset prefer", "accessed", "unset accessed"};
  pthread_mutex_lock(&lock);
  struct memory *m = memory_of(at);
  int wrong = !m || !m->managed || (char *)at + bytes > m->at + m->bytes || !bytes;
  int prefers = advice == cudaMemAdviseSetPreferredLocation;
  size_t first = wrong ? 0 : (size_t)((char *)at - m->at);
  for (size_t byte = first; !wrong && byte < first + bytes; byte += PAGE)
    if (prefers || advice == cudaMemAdviseUnsetPreferredLocation)
      m->far[byte / PAGE] = prefers && to < 0;
  if (!wrong)
    fprintf(books, "%s %ld %zu %zu at %d\n", SAID[advice], m - memory, first, first + bytes, to);
  pthread_mutex_unlock(&lock);
  return wrong || fails("cudaMemAdvise") ? answer(cudaErrorInvalidValue) : cudaSuccess;
}

#if CUDART_VERSION >= 13000
static int number(struct cudaMemLocation place) {
  return place.type == cudaMemLocationTypeHost ? cudaCpuDeviceId : place.id;
}
cudaError_t cudaMemPrefetchAsync(const void *at, size_t bytes, struct cudaMemLocation place,
                                 unsigned flags, cudaStream_t stream) {
  return flags ? answer(cudaErrorInvalidValue) : move(at, bytes, number(place), stream);
}
cudaError_t cudaMemAdvise(const void *at, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation place) {
  return advise(at, bytes, advice, number(place));
}
#else
cudaError_t cudaMemPrefetchAsync(const void *at, size_t bytes, int to, cudaStream_t stream) {
  return move(at, bytes, to, stream);
}
cudaError_t cudaMemAdvise(const void *at, size_t bytes, enum cudaMemoryAdvise advice, int to) {
  return advise(at, bytes, advice, to);
}
#endif

/* Kernels */

void __cudaRegisterFunction(void **binary, const char *function, char *device_function,
                            const char *kernel, int threads, void *tid, void *bid, void *block,
                            void *grid, int *warp) {
  (void)binary, (void)device_function, (void)threads;
  (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
  kernels[n_kernels].function = function;
  kernels[n_kernels++].name = kernel;
}

static cudaError_t launch(const void *function, dim3 block, void **arguments, cudaStream_t stream) {
  long known = 0;
  while (known < n_kernels && kernels[known].function != function)
    known++;
  if (known == n_kernels || !block.x)
    return answer(cudaErrorInvalidConfiguration);
  pthread_mutex_lock(&lock);
  struct work *w = add(KERNEL, stream);
  w->kernel = (void (*)(void **))function;
  w->name = kernels[known].name;
  for (int n = 0; !getenv("NAMES") && arguments[n]; n++)
    memcpy(&w->values[n], arguments[n], sizeof w->values[n]);
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

#define LAUNCH(name, own)                                                                          \
  cudaError_t name(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,   \
                   cudaStream_t stream) {                                                          \
    (void)grid, (void)shared;                                                                      \
    return launch(function, block, arguments, stream ? stream : (own));                            \
  }
LAUNCH(cudaLaunchKernel, 0)
LAUNCH(cudaLaunchKernel_ptsz, cudaStreamPerThread)
LAUNCH(cudaLaunchCooperativeKernel, 0)

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *how, const void *function, void **with) {
  return launch(function, how->blockDim, with, how->stream);
}

/* CUDA 13 launches handles: here the function's address and one. */
cudaError_t __cudaGetKernel(void **kernel, const void *function) {
  *kernel = (char *)function + 1;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared, cudaStream_t stream) {
  (void)grid, (void)shared;
  return launch((char *)kernel - 1, block, arguments, stream);
}

/* What the code around <<<>>> calls. */
static __thread struct { dim3 grid, block; size_t shared; cudaStream_t stream; } configured;
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configured.grid = grid, configured.block = block;
  configured.shared = shared, configured.stream = stream;
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       cudaStream_t *stream) {
  *grid = configured.grid, *block = configured.block;
  *shared = configured.shared, *stream = configured.stream;
  return cudaSuccess;
}
void **__cudaRegisterFatBinary(void *binary) { return binary; }
void __cudaRegisterFatBinaryEnd(void **binary) { (void)binary; }
void __cudaUnregisterFatBinary(void **binary) { (void)binary; }

/* Streams and events */

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  *stream = calloc(1, sizeof **stream);
  (*stream)->number = n_streams++;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  free(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  pthread_mutex_lock(&lock);
  long number = number_of(stream);
  for (long n = 0; n < n_work; n++)
    if (work[n].stream == number)
      run(n);
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
  pthread_mutex_lock(&lock);
  run_all();
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, int mode) {
  (void)mode;
  stream->captures = 1;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  int is_own = stream && stream != cudaStreamPerThread;
  *status = is_own && stream->captures; /* active, or none */
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
  (void)flags;
  *event = malloc(sizeof **event);
  (*event)->record = -1;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  pthread_mutex_lock(&lock);
  event->record = add(RECORD, stream) - work;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  (void)flags;
  pthread_mutex_lock(&lock);
  add(WAIT, stream)->record = event->record;
  pthread_mutex_unlock(&lock);
  return cudaSuccess;
}

/* The rest */

cudaError_t cudaGetDevice(int *found) {
  *found = device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) {
  device = number;
  return cudaSuccess;
}
cudaError_t cudaGetLastError(void) {
  cudaError_t error = last;
  last = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError(void) { return last; }
const char *cudaGetErrorName(cudaError_t error) {
  return error == cudaErrorInvalidDevice      ? "cudaErrorInvalidDevice"
         : error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                              : "cudaErrorInvalidValue";
}
cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = getenv("VERSION") ? atoi(getenv("VERSION")) : CUDART_VERSION;
  return cudaSuccess;
}
