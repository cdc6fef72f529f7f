/* Tidegate: moves the memory of an unmodified CUDA program by a plan, from outside.
   SPDX-License-Identifier: Apache-2.0

   It was never run on a GPU: it is tested against a runtime that only keeps books.

     cc -shared -fPIC -O2 -I/usr/local/cuda/include THIS.c -o libtidegate_preload.so -ldl -lpthread
     TIDEGATE_PLAN=plan.json LD_PRELOAD=./libtidegate_preload.so ./program

   What cudaMalloc gives becomes managed memory. Allocations are recognised by their order and
   sizes, launches by their order and the kernels' names; before each launch the plan's requests
   (prefetch, evict, advice) are made on its stream. None of them can change what the program
   computes. If the program leaves the plan, or there is no usable plan, this is said once on
   stderr, and memory is plain managed memory from there on.

   Calls of a runtime that is linked statically (nvcc's default) cannot be seen: link the program
   with nvcc -cudart shared. */

#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum verb { PREFETCH, EVICT, FAR, ANYWHERE, READ_MOSTLY, VERBS };
static const char *const VERB[VERBS] = {"prefetch", "evict", "far", "anywhere", "read-mostly"};

struct object {
  char *name, *at; /* at: its memory now, or NULL */
  uint64_t bytes;
  int fresh; /* no advice so far */
};
struct request {
  int verb;
  uint64_t object, first, end; /* bytes of the object */
};
struct launch {
  char *kernel;
  size_t first, end; /* its requests */
};

static struct {
  struct object *objects;
  struct request *requests;
  struct launch *launches;
  size_t n_objects, n_requests, n_launches;
  uint64_t again; /* the last so many launches repeat until the program ends */
  size_t object, launch; /* the next ones */
  uint64_t launched; /* launches so far, repeated ones included */
  int device; /* of all launches */
  cudaEvent_t event;
  int fresh; /* objects were allocated since the last launch */
  int followed; /* 0: plain managed memory */
} plan = {.device = -1};

static int was_called; /* the runtime, by the program */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside;          /* the runtime calls itself: not the program's calls */
static __thread cudaError_t pending; /* the program's last error, hidden by our own calls */

static int enter(void);
static void leave(int entered);
static void begin(void);
static void diverge(const char *why, ...) __attribute__((format(printf, 1, 2)));
static void bind(char *at, uint64_t bytes);
static void unbind(const void *at);
static void follow(const void *function, cudaStream_t stream);
static void keep_name(const void *function, const char *kernel);
static const char *name_of(const void *function);
static void forget_stream(cudaStream_t stream);
static void keep_error(void);
static void drop_error(void);
static void *next(void **kept, const char *name);

/* The runtime's own function of this name. */
#define REAL(name) ({ static void *kept; (__typeof__(&name))next(&kept, #name); })

/* The program's calls. Those of files compiled with a default stream per thread end in _ptsz. */

static int is_managed(void **at, size_t bytes) {
  if (!at || !bytes)
    return 0;
  int entered = enter();
  keep_error();
  cudaError_t error = REAL(cudaMallocManaged)(at, bytes, cudaMemAttachGlobal);
  if (!error && entered)
    bind(*at, bytes);
  if (error && entered)
    diverge("%s: %zu bytes cannot be managed", REAL(cudaGetErrorName)(error), bytes);
  drop_error();
  leave(entered);
  return !error;
}

cudaError_t cudaMalloc(void **at, size_t bytes) {
  return is_managed(at, bytes) ? cudaSuccess : REAL(cudaMalloc)(at, bytes);
}

#define MALLOC_ASYNC(name)                                                                         \
  cudaError_t name(void **at, size_t bytes, cudaStream_t stream) {                                 \
    return is_managed(at, bytes) ? cudaSuccess : REAL(name)(at, bytes, stream);                    \
  }
MALLOC_ASYNC(cudaMallocAsync)
MALLOC_ASYNC(cudaMallocAsync_ptsz)

cudaError_t cudaMallocManaged(void **at, size_t bytes, unsigned flags) {
  int entered = enter();
  cudaError_t error = REAL(cudaMallocManaged)(at, bytes, flags);
  if (!error && entered) {
    keep_error();
    bind(*at, bytes);
    drop_error();
  }
  leave(entered);
  return error;
}

cudaError_t cudaFree(void *at) {
  int entered = enter();
  if (entered)
    unbind(at);
  leave(entered);
  return REAL(cudaFree)(at);
}

/* Managed memory is in no pool: it is freed once the stream is done with it. */
#define FREE_ASYNC(name, own)                                                                      \
  cudaError_t name(void *at, cudaStream_t stream) {                                                \
    struct cudaPointerAttributes found;                                                            \
    keep_error();                                                                                  \
    cudaError_t error = REAL(cudaPointerGetAttributes)(&found, at);                                \
    drop_error();                                                                                  \
    if (error || found.type != cudaMemoryTypeManaged)                                              \
      return REAL(name)(at, stream);                                                               \
    error = REAL(cudaStreamSynchronize)(own(stream));                                              \
    return error ? error : cudaFree(at);                                                           \
  }
#define GIVEN(stream) (stream)
#define PER_THREAD(stream) ((stream) ? (stream) : cudaStreamPerThread)
FREE_ASYNC(cudaFreeAsync, GIVEN)
FREE_ASYNC(cudaFreeAsync_ptsz, PER_THREAD)

/* The lock is held until the launch is made, so that launches come in the order of the plan. */
#define LAUNCH(name, own)                                                                          \
  cudaError_t name(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,   \
                   cudaStream_t stream) {                                                          \
    int entered = enter();                                                                         \
    if (entered)                                                                                   \
      follow(function, own(stream));                                                               \
    cudaError_t error = REAL(name)(function, grid, block, arguments, shared, stream);              \
    leave(entered);                                                                                \
    return error;                                                                                  \
  }
LAUNCH(cudaLaunchKernel, GIVEN)
LAUNCH(cudaLaunchKernel_ptsz, PER_THREAD)
LAUNCH(cudaLaunchCooperativeKernel, GIVEN)
LAUNCH(cudaLaunchCooperativeKernel_ptsz, PER_THREAD)
LAUNCH(__cudaLaunchKernel, GIVEN) /* CUDA 13's <<<>>> */
LAUNCH(__cudaLaunchKernel_ptsz, PER_THREAD)

#if CUDART_VERSION >= 11080
#define LAUNCH_EX(name, own)                                                                       \
  cudaError_t name(const cudaLaunchConfig_t *how, const void *function, void **arguments) {        \
    int entered = how ? enter() : 0;                                                               \
    if (entered)                                                                                   \
      follow(function, own(how->stream));                                                          \
    cudaError_t error = REAL(name)(how, function, arguments);                                      \
    leave(entered);                                                                                \
    return error;                                                                                  \
  }
LAUNCH_EX(cudaLaunchKernelExC, GIVEN)
LAUNCH_EX(cudaLaunchKernelExC_ptsz, PER_THREAD)
#endif

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  int entered = enter();
  if (entered)
    forget_stream(stream);
  leave(entered);
  return REAL(cudaStreamDestroy)(stream);
}

/* Launches name a function of the host; the compiler's own code says which kernel that is. */
void __cudaRegisterFunction(void **binary, const char *function, char *device, const char *kernel,
                            int threads, void *tid, void *bid, void *block, void *grid, int *warp) {
  keep_name(function, kernel);
  REAL(__cudaRegisterFunction)
  (binary, function, device, kernel, threads, tid, bid, block, grid, warp);
}

cudaError_t __cudaGetKernel(void **kernel, const void *function) {
  cudaError_t error = REAL(__cudaGetKernel)(kernel, function);
  if (error == cudaSuccess && name_of(function))
    keep_name(*kernel, name_of(function));
  return error;
}

/* The last error is the program's own, whatever our calls did. */
cudaError_t cudaGetLastError(void) {
  cudaError_t error = REAL(cudaGetLastError)(), before = pending;
  pending = cudaSuccess;
  return error ? error : before;
}

cudaError_t cudaPeekAtLastError(void) {
  cudaError_t error = REAL(cudaPeekAtLastError)();
  return error ? error : pending;
}

/* Following the plan */

static void bind(char *at, uint64_t bytes) {
  struct object *found = NULL;
  if (plan.object < plan.n_objects && plan.objects[plan.object].bytes == bytes)
    found = &plan.objects[plan.object++];
  for (size_t n = 0; !found && n < plan.object; n++) /* one that was freed, anew */
    if (!plan.objects[n].at && plan.objects[n].bytes == bytes)
      found = &plan.objects[n];
  if (found) {
    found->at = at;
    found->fresh = plan.fresh = 1;
  } else if (plan.object < plan.n_objects)
    diverge("the program allocates %llu bytes, the plan has %llu here, for %s",
            (unsigned long long)bytes, (unsigned long long)plan.objects[plan.object].bytes,
            plan.objects[plan.object].name);
  else
    diverge("the program allocates %llu bytes more than the plan has", (unsigned long long)bytes);
}

static void unbind(const void *at) {
  for (size_t n = 0; at && n < plan.n_objects; n++)
    if (plan.objects[n].at == at)
      plan.objects[n].at = NULL;
}

/* CUDA 13 takes a place as a structure, earlier versions take its number. */
#if CUDART_VERSION >= 13000
static struct cudaMemLocation place(int device) {
  struct cudaMemLocation found;
  memset(&found, 0, sizeof found);
  found.type = device == cudaCpuDeviceId ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  found.id = device == cudaCpuDeviceId ? 0 : device;
  return found;
}
#define MOVE(at, n, device, stream) REAL(cudaMemPrefetchAsync)(at, n, place(device), 0, stream)
#else
#define place(device) (device)
#define MOVE(at, n, device, stream) REAL(cudaMemPrefetchAsync)(at, n, device, stream)
#endif

static cudaError_t advise(char *at, size_t bytes, enum cudaMemoryAdvise advice, int device) {
  return REAL(cudaMemAdvise)(at, bytes, advice, place(device));
}

static cudaError_t ask(const struct request *asked, cudaStream_t stream) {
  char *at = plan.objects[asked->object].at + asked->first;
  size_t bytes = asked->end - asked->first;
  cudaError_t error;
  switch (asked->verb) {
  case PREFETCH:
    return MOVE(at, bytes, plan.device, stream);
  case EVICT:
    return MOVE(at, bytes, cudaCpuDeviceId, stream);
  case FAR:
    error = advise(at, bytes, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId);
    return error ? error : advise(at, bytes, cudaMemAdviseSetAccessedBy, plan.device);
  case ANYWHERE:
    error = advise(at, bytes, cudaMemAdviseUnsetPreferredLocation, cudaCpuDeviceId);
    return error ? error : advise(at, bytes, cudaMemAdviseUnsetAccessedBy, plan.device);
  default:
    return advise(at, bytes, cudaMemAdviseSetReadMostly, plan.device);
  }
}

/* Make the requests for memory that is allocated. late: advice for what has none so far, only. */
static void ask_all(size_t first, size_t end, int late, cudaStream_t stream) {
  for (size_t n = first; n < end && plan.followed; n++) {
    const struct request *asked = &plan.requests[n];
    const struct object *object = &plan.objects[asked->object];
    if (!object->at || (late && (!object->fresh || asked->verb < FAR)))
      continue;
    cudaError_t error = ask(asked, stream);
    if (error)
      diverge("%s: the plan's request (%s %s) failed", REAL(cudaGetErrorName)(error),
              VERB[asked->verb], object->name);
  }
}

/* Streams with launches that the plan's requests have not waited for. Moving memory that another
   stream still uses would be right but slow, and more would be near than was planned. */
enum { MOST_STREAMS = 256 };
static struct {
  cudaStream_t stream;
  pthread_t thread; /* of a thread's own default stream, which others cannot name */
} busy[MOST_STREAMS];
static size_t n_busy;

static int is_same_stream(size_t n, cudaStream_t stream) {
  return busy[n].stream == stream &&
         (stream != cudaStreamPerThread || pthread_equal(busy[n].thread, pthread_self()));
}

static void forget_stream(cudaStream_t stream) {
  for (size_t n = 0; n < n_busy; n++)
    if (is_same_stream(n, stream))
      busy[n--] = busy[--n_busy];
}

static void wait_for_others(cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  forget_stream(stream);
  if (n_busy && !plan.event)
    error = REAL(cudaEventCreateWithFlags)(&plan.event, cudaEventDisableTiming);
  for (size_t n = 0; n < n_busy && !error; n++) {
    if (busy[n].stream == cudaStreamPerThread) {
      diverge("default streams of several threads are in use");
      return;
    }
    error = REAL(cudaEventRecord)(plan.event, busy[n].stream);
    if (!error)
      error = REAL(cudaStreamWaitEvent)(stream, plan.event, 0);
  }
  n_busy = 0;
  if (error)
    diverge("%s: streams cannot wait for each other", REAL(cudaGetErrorName)(error));
}

static int is_as_planned(const char *kernel, cudaStream_t stream) {
  unsigned long long number = plan.launched + 1;
  enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  int device = -1;
  const char *other = NULL;
  if (plan.launch == plan.n_launches)
    plan.launch -= plan.again;
  if (!kernel)
    kernel = "a function that was not registered";
  if (plan.launch == plan.n_launches)
    diverge("launch %llu is %s, the plan ends before it", number, kernel);
  else if (strcmp(kernel, plan.launches[plan.launch].kernel))
    diverge("launch %llu is %s, the plan has %s", number, kernel,
            plan.launches[plan.launch].kernel);
  else if (REAL(cudaStreamIsCapturing)(stream, &capture) || capture)
    other = "is captured into a graph";
  else if (REAL(cudaGetDevice)(&device) || (plan.device >= 0 && device != plan.device))
    other = "is on another device than the first one";
  else if (n_busy == MOST_STREAMS)
    other = "is on one stream too many";
  if (capture)
    plan.device = -1; /* no advice may be taken back now */
  if (other)
    diverge("launch %llu %s", number, other);
  plan.device = plan.device < 0 ? device : plan.device;
  return plan.followed;
}

static void follow(const void *function, cudaStream_t stream) {
  keep_error();
  if (is_as_planned(name_of(function), stream)) {
    const struct launch *now = &plan.launches[plan.launch++];
    if (now->first < now->end)
      wait_for_others(stream);
    if (plan.fresh) /* advice of launches before their allocation */
      ask_all(0, now->first, 1, stream);
    ask_all(now->first, now->end, 0, stream);
    for (size_t n = 0; plan.fresh && n < plan.n_objects; n++)
      plan.objects[n].fresh = 0;
    plan.fresh = 0;
    forget_stream(stream);
    busy[n_busy].stream = stream;
    busy[n_busy++].thread = pthread_self();
    plan.launched++;
  }
  drop_error();
}

/* Around our own calls: the program's last error is put aside, ours are dropped. */
static void keep_error(void) {
  cudaError_t error = REAL(cudaGetLastError)();
  if (error)
    pending = error;
}

static void drop_error(void) { REAL(cudaGetLastError)(); }

/* Leave the plan, for good: its advice is taken back. */
static void diverge(const char *why, ...) {
  char line[1024];
  va_list words;
  if (!plan.followed)
    return;
  __atomic_store_n(&plan.followed, 0, __ATOMIC_RELEASE);
  va_start(words, why);
  vsnprintf(line, sizeof line, why, words);
  va_end(words);
  fprintf(stderr, "tidegate: %s; plain managed memory from here on\n", line);
  for (size_t n = 0; n < plan.n_objects && plan.device >= 0; n++) {
    const struct object *o = &plan.objects[n];
    if (!o->at)
      continue;
    advise(o->at, o->bytes, cudaMemAdviseUnsetPreferredLocation, cudaCpuDeviceId);
    advise(o->at, o->bytes, cudaMemAdviseUnsetAccessedBy, plan.device);
    advise(o->at, o->bytes, cudaMemAdviseUnsetReadMostly, plan.device);
  }
}

static int enter(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, begin);
  if (inside || !__atomic_load_n(&plan.followed, __ATOMIC_ACQUIRE))
    return 0;
  pthread_mutex_lock(&lock);
  if (!plan.followed) {
    pthread_mutex_unlock(&lock);
    return 0;
  }
  return inside = 1;
}

static void leave(int entered) {
  if (!entered)
    return;
  inside = 0;
  pthread_mutex_unlock(&lock);
}

/* Return a new last element of an array or NULL. Room doubles at powers of two. */
static void *one_more(void *array, size_t *count, size_t bytes) {
  char *at;
  memcpy(&at, array, sizeof at); /* whatever it points to */
  if ((*count & (*count - 1)) == 0) {
    at = realloc(at, (*count ? *count * 2 : 1) * bytes);
    if (!at)
      return NULL;
    memcpy(array, &at, sizeof at);
  }
  return at + (*count)++ * bytes;
}

/* Kernels' names, by the function that the host launches */

static struct name {
  const void *function;
  const char *kernel;
} *names;
static size_t n_names;
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep_name(const void *function, const char *kernel) {
  pthread_mutex_lock(&names_lock);
  struct name *made = one_more(&names, &n_names, sizeof *made);
  if (made)
    *made = (struct name){function, strdup(kernel)};
  pthread_mutex_unlock(&names_lock);
}

static const char *name_of(const void *function) {
  const char *found = NULL;
  pthread_mutex_lock(&names_lock);
  for (size_t n = n_names; n-- && !found;)
    found = names[n].function == function ? names[n].kernel : NULL;
  pthread_mutex_unlock(&names_lock);
  return found;
}

/* Return the runtime's function. A runtime loaded by dlopen is found by its file's name. */
static void *next(void **kept, const char *name) {
  void *found = __atomic_load_n(kept, __ATOMIC_RELAXED);
  char file[32];
  if (found)
    return found;
  snprintf(file, sizeof file, "libcudart.so.%d", CUDART_VERSION / 1000);
  found = dlsym(RTLD_NEXT, name);
  if (!found) {
    void *runtime = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    found = runtime ? dlsym(runtime, name) : NULL;
  }
  if (!found) {
    fprintf(stderr, "tidegate: the CUDA runtime has no %s; run without LD_PRELOAD\n", name);
    abort();
  }
  __atomic_store_n(kept, found, __ATOMIC_RELAXED);
  return found;
}

/* Reading the plan: JSON in the one form that tidegate writes. After the first mistake nothing more
   is read. */

enum { MOST_BYTES = 1 << 26 };
static struct {
  char *text, *at;
  const char *expected; /* the first mistake: this was expected at `at` */
} file;

static int expect(int found, const char *what) {
  if (!found && !file.expected)
    file.expected = what;
  return !file.expected;
}

static int is_next(const char *mark) {
  if (file.expected)
    return 0;
  file.at += strspn(file.at, " \t\r\n");
  return !strncmp(file.at, mark, strlen(mark));
}

static void take(const char *mark) {
  if (expect(is_next(mark), mark))
    file.at += strlen(mark);
}

static uint64_t take_number(uint64_t least, uint64_t most, const char *what) {
  uint64_t found = 0;
  if (!is_next(""))
    return 0;
  char *end = file.at;
  for (; *end >= '0' && *end <= '9' && found < INT64_MAX / 10; end++)
    found = found * 10 + (uint64_t)(*end - '0');
  int whole = end > file.at && (*file.at != '0' || end == file.at + 1);
  if (!expect(whole && found >= least && found <= most && !strchr("0123456789.eE", *end), what))
    return 0;
  file.at = end;
  return found;
}

/* A name is kept as it is written: kernels' names need no escapes. */
static char *take_text(void) {
  take("\"");
  const char *start = file.at;
  while (!file.expected && *file.at != '"' &&
         expect((unsigned char)*file.at >= ' ', "the end of a text"))
    file.at += *file.at == '\\' && (file.at[1] == '"' || file.at[1] == '\\') ? 2 : 1;
  char *made = file.expected ? NULL : strndup(start, (size_t)(file.at - start));
  take("\"");
  return made;
}

static void read_each(void (*read_one)(void)) {
  take("[");
  for (int first = 1; !is_next("]") && !file.expected; first = 0) {
    if (!first)
      take(",");
    read_one();
  }
  take("]");
}

static void read_object(void) {
  struct object *made = one_more(&plan.objects, &plan.n_objects, sizeof *made);
  take("{"), take("\"name\""), take(":");
  char *name = take_text();
  take(","), take("\"bytes\""), take(":");
  uint64_t bytes = take_number(1, INT64_MAX, "at least one byte");
  take("}");
  if (expect(made && name, "more memory"))
    *made = (struct object){.name = name, .bytes = bytes};
}

static void read_request(void) {
  struct request *made = one_more(&plan.requests, &plan.n_requests, sizeof *made);
  take("[");
  char *verb = take_text();
  int known = 0;
  while (verb && known < VERBS && strcmp(verb, VERB[known]))
    known++;
  free(verb);
  expect(known < VERBS, "prefetch, evict, far, anywhere or read-mostly before here");
  take(",");
  expect(made && plan.n_objects, "an object before any request");
  uint64_t object = take_number(0, plan.n_objects - 1, "the number of an object");
  if (file.expected)
    return;
  uint64_t most = plan.objects[object].bytes;
  take(",");
  uint64_t first = take_number(0, most, "a byte of the object");
  take(",");
  uint64_t end = take_number(first + 1, most, "a later byte of the object");
  take("]");
  *made = (struct request){known, object, first, end};
}

static void read_launch(void) {
  struct launch *made = one_more(&plan.launches, &plan.n_launches, sizeof *made);
  size_t first = plan.n_requests;
  take("{"), take("\"kernel\""), take(":");
  char *kernel = take_text();
  take(","), take("\"requests\""), take(":"), read_each(read_request), take("}");
  if (expect(made && kernel, "more memory"))
    *made = (struct launch){kernel, first, plan.n_requests};
}

static void read_plan(void) {
  take("{"), take("\"tidegate preload\""), take(":"), take_number(1, 1, "version 1 of plans");
  take(","), take("\"about\""), take(":"), free(take_text());
  take(","), take("\"objects\""), take(":"), read_each(read_object);
  take(","), take("\"launches\""), take(":"), read_each(read_launch);
  take(","), take("\"again\""), take(":");
  plan.again = take_number(0, plan.n_launches, "no more launches than there are");
  take("}");
  is_next("");
  expect(!*file.at, "the end of the file");
}

/* Return why there is no text, or NULL. */
static const char *load(const char *path) {
  FILE *source = path ? fopen(path, "rb") : NULL;
  if (!source)
    return path ? "cannot be opened" : "is not set; set it to the plan's file";
  file.at = file.text = malloc(MOST_BYTES + 1);
  size_t bytes = file.text ? fread(file.text, 1, MOST_BYTES + 1, source) : 0;
  int failed = ferror(source);
  fclose(source);
  if (!file.text || failed || bytes > MOST_BYTES)
    return bytes > MOST_BYTES ? "has more than 64 MiB" : "cannot be read";
  file.text[bytes] = 0;
  return memchr(file.text, 0, bytes) ? "is not text" : NULL;
}

static void begin(void) {
  was_called = 1;
  const char *path = getenv("TIDEGATE_PLAN"), *why = load(path);
  int version = 0, line = 1, shown = 0;
  plan.followed = 1; /* so that leaving it is said */
  if (!path || why)
    diverge("%s %s", path ? path : "TIDEGATE_PLAN", why);
  else if (REAL(cudaRuntimeGetVersion)(&version) || version / 1000 != CUDART_VERSION / 1000)
    diverge("this library was built for CUDA %d, the program runs with CUDA %d; build it again",
            CUDART_VERSION / 1000, version / 1000);
  else
    read_plan();
  for (const char *at = file.text; file.expected && at < file.at; at++)
    line += *at == '\n';
  while (file.expected && shown < 20 && (unsigned char)file.at[shown] >= ' ')
    shown++;
  if (file.expected)
    diverge("%s, line %d: expected %s, got '%.*s'", path, line, file.expected, shown, file.at);
  free(file.text);
}

/* A runtime that was linked statically made no call here. */
__attribute__((destructor)) static void at_exit(void) {
  if (!was_called && dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD))
    fputs("tidegate: no call of the CUDA runtime was seen; link it with nvcc -cudart shared\n",
          stderr);
}
