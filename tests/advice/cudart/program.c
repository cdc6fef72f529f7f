/* A CUDA program as a compiler would make it of CUDA C++: kernels registered before main. It does
   what its words say, in their order (see `obey`), and prints a checksum and the errors it saw. A
   word that means nothing else is the form of the launches after it. */

#include "cuda_runtime_api.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void use(const void *at, size_t bytes);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *,
                            void *, void *, int *);
cudaError_t __cudaGetKernel(void **kernel, const void *function);
cudaError_t __cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, cudaStream_t);
cudaError_t cudaLaunchKernel_ptsz(const void *, dim3, dim3, void **, size_t, cudaStream_t);

static void add(void **with) {
  double *a = *(double **)with[0], *b = *(double **)with[1];
  size_t n = *(size_t *)with[2];
  use(a, n * sizeof *a), use(b, n * sizeof *b);
  for (size_t i = 0; i < n; i++)
    a[i] += b[i] + 1;
}
static void twice(void **with) {
  double *a = *(double **)with[0];
  size_t n = *(size_t *)with[2];
  use(a, n * sizeof *a);
  for (size_t i = 0; i < n; i++)
    a[i] *= 2;
}

__attribute__((constructor)) static void register_kernels(void) {
  __cudaRegisterFunction(0, (char *)add, 0, "_Z3addPdPKdm", -1, 0, 0, 0, 0, 0);
  __cudaRegisterFunction(0, (char *)twice, 0, "_Z5twicePdm", -1, 0, 0, 0, 0, 0);
}

static double *x, *y, *z;
static size_t n = 1 << 16;
static cudaStream_t streams[2];
static const char *form = "plain";
static const dim3 ONE = {1, 1, 1};

static void launch(void (*kernel)(void **), double *a, double *b, cudaStream_t stream) {
  void *arguments[] = {&a, &b, &n, NULL}, *handle;
  cudaLaunchConfig_t how = {.gridDim = ONE, .blockDim = ONE, .stream = stream};
  if (!strcmp(form, "handle"))
    __cudaGetKernel(&handle, (void *)kernel),
        __cudaLaunchKernel(handle, ONE, ONE, arguments, 0, stream);
  else if (!strcmp(form, "configured"))
    cudaLaunchKernelExC(&how, (void *)kernel, arguments);
  else if (!strcmp(form, "cooperative"))
    cudaLaunchCooperativeKernel((void *)kernel, ONE, ONE, arguments, 0, stream);
  else if (!strcmp(form, "ptsz"))
    cudaLaunchKernel_ptsz((void *)kernel, ONE, ONE, arguments, 0, stream);
  else
    cudaLaunchKernel((void *)kernel, ONE, ONE, arguments, 0, stream);
}

static void fill(double *to, double first) {
  double *host = malloc(n * sizeof *host);
  for (size_t i = 0; i < n; i++)
    host[i] = first + (double)i;
  cudaMemcpy(to, host, n * sizeof *host, cudaMemcpyHostToDevice);
  free(host);
}

static double sum(const double *of) {
  double *host = malloc(n * sizeof *host), found = 0;
  cudaMemcpy(host, of, n * sizeof *host, cudaMemcpyDeviceToHost);
  for (size_t i = 0; i < n; i++)
    found += host[i] * (double)(i % 7);
  free(host);
  return found;
}

static void *other; /* memory that few programs have */

/* Stream 2 waits for what the others do, as the program's data need it. */
static void order(cudaStream_t later, cudaStream_t first) {
  cudaEvent_t event;
  cudaEventCreateWithFlags(&event, 0);
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(later, event, 0);
}

static void obey(const char *word) {
  if (!strcmp(word, "add"))
    launch(add, y, z, NULL);
  else if (!strcmp(word, "twice"))
    launch(twice, x, x, NULL);
  else if (!strcmp(word, "last"))
    launch(add, y, x, NULL);
  else if (!strcmp(word, "add1"))
    launch(add, y, z, streams[0]);
  else if (!strcmp(word, "twice2"))
    launch(twice, x, x, streams[1]);
  else if (!strcmp(word, "last1"))
    order(streams[0], streams[1]), launch(add, y, x, streams[0]);
  else if (!strcmp(word, "destroy"))
    cudaStreamSynchronize(streams[1]), cudaStreamDestroy(streams[1]), cudaStreamCreate(&streams[1]);
  else if (!strcmp(word, "wrong")) { /* a launch that the runtime refuses */
    void *arguments[] = {NULL};
    cudaLaunchKernel((void *)add, ONE, (dim3){0, 0, 0}, arguments, 0, NULL);
  } else if (!strcmp(word, "error"))
    for (int k = 0; k < 3; k++)
      printf("error %d\n", k ? cudaGetLastError() : cudaPeekAtLastError());
  else if (!strcmp(word, "more"))
    printf("more %d\n", cudaMalloc(&other, 4096));
  else if (!strcmp(word, "nothing"))
    printf("nothing %d %p\n", cudaMalloc(&other, 0), other);
  else if (!strcmp(word, "again")) {
    cudaDeviceSynchronize(), cudaFree(z), cudaMalloc((void **)&z, n * sizeof *z), fill(z, 3);
  } else if (!strcmp(word, "smaller")) {
    cudaDeviceSynchronize(), cudaFree(z);
    cudaMalloc((void **)&other, n), cudaMalloc((void **)&z, n * sizeof *z), fill(z, 3);
  } else if (!strcmp(word, "async")) {
    printf("async %d\n", cudaMallocAsync(&other, n * sizeof *x, streams[0]));
    launch(twice, other, other, streams[0]);
    printf("async %d\n", cudaFreeAsync(other, streams[0]));
  } else if (!strcmp(word, "capture"))
    cudaStreamBeginCapture(streams[1], 0);
  else if (!strcmp(word, "device"))
    cudaSetDevice(1);
  else if (!strcmp(word, "early"))
    printf("early\n"), exit(3);
  else
    form = word;
}

static pthread_barrier_t turn;
static char **words;

static void *every_second(void *odd) { /* two threads, in turns */
  for (char **word = words; *word; word++) {
    if ((word - words) % 2 == (odd != NULL))
      obey(*word);
    pthread_barrier_wait(&turn);
  }
  return NULL;
}

static void *crowd(void *unused) { /* four of these at once, in no order */
  void *own;
  for (int k = 0; k < 50; k++)
    cudaMalloc(&own, 4096), launch(twice, x, x, NULL), cudaGetLastError(), cudaFree(own);
  return unused;
}

int main(int count, char **given) {
  pthread_t threads[4];
  if (count > 1 && !strncmp(given[1], "n=", 2))
    n = (size_t)atol(given[1] + 2), given++;
  cudaStreamCreate(&streams[0]), cudaStreamCreate(&streams[1]);
  printf("%d", cudaMalloc((void **)&x, n * sizeof *x));
  printf("%d", cudaMalloc((void **)&y, n * sizeof *y));
  printf("%d\n", cudaMallocManaged((void **)&z, n * sizeof *z, cudaMemAttachGlobal));
  fill(x, 1), fill(y, 2), fill(z, 3);
  for (words = given + 1; *words; words++) {
    if (!strcmp(*words, "threads")) {
      words++;
      pthread_barrier_init(&turn, NULL, 2);
      pthread_create(&threads[0], NULL, every_second, NULL);
      pthread_create(&threads[1], NULL, every_second, &turn);
      pthread_join(threads[0], NULL), pthread_join(threads[1], NULL);
      break;
    }
    if (!strcmp(*words, "crowd"))
      for (int k = 0; k < 8; k++)
        k < 4 ? pthread_create(&threads[k], NULL, crowd, NULL) : pthread_join(threads[k - 4], NULL);
    else
      obey(*words);
  }
  printf("%.17g %.17g\n", sum(x), sum(y));
  cudaFree(x), cudaFree(y), cudaFree(z);
  printf("left %d\n", cudaGetLastError());
  return 0;
}
