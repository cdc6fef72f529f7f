// Measures what `tidegate calibrate` fits a machine's constants to, and prints it as CSV.
//
//   nvcc -O2 probe.cu -o probe && ./probe > probe.csv
//
// It takes a few minutes, 4 GiB of host memory and, while it runs, all memory of the card. Close
// what else uses the card. Rows: what was done, its bytes, the near memory that managed data could
// use, what else there is to say of it, the launch (0: all of them), the repeat, nanoseconds.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

static const size_t KIB = 1024, MIB = 1024 * KIB, GIB = 1024 * MIB;
static const size_t PAGE = 4 * KIB, LEAF = 64 * KIB, BLOCK = 2 * MIB;
static const size_t ROOM = 2 * GIB;        // near memory that the balloon leaves
static const size_t LEAST_ROOM = 512 * MIB;
static const size_t LARGEST_COPY = 64 * MIB;
static const int REPEATS = 5;
static const int MISTAKE = 2;              // exit code: this card or host cannot be measured
static const int THREADS = 256;            // of a thread block
static const int TILE = 16;                // of the stencil
static const int SEQUENCE_BLOCKS = 256;

static void check(cudaError_t answer, const char *call, int line) {
  if (answer == cudaSuccess) return;
  fprintf(stderr, "probe: line %d: %s: %s\n", line, call, cudaGetErrorString(answer));
  exit(1);
}
#define CHECK(call) check((call), #call, __LINE__)

static void refuse(const char *why) {
  fprintf(stderr, "probe: %s\n", why);
  exit(MISTAKE);
}

// ---- Kernels: the index functions of Tidegate's workloads of the same names

// page-order: one thread reads one word
__global__ void touch(const unsigned *a, size_t word, unsigned *out) { *out = a[word]; }

// sparse: a thread reads and writes one word of a 4 KiB page
__global__ void sparse(unsigned *a, const size_t *words, size_t n) {
  size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n) a[words[i]] = a[words[i]] * 5 + 1;
}

// sequence: a thread walks its own part of two arrays, 4 KiB at a time
__global__ void sequence(const float *in, float *out, size_t n, size_t part) {
  size_t first = ((size_t)blockIdx.x * THREADS + threadIdx.x) * part;
  size_t end = first + part < n ? first + part : n;
  for (size_t i = first; i < end; i += PAGE / sizeof(float)) out[i] = in[i] * 1.5f + 2.0f;
}

__global__ void triad(const float *a, const float *b, float *c, float s, size_t n) {
  size_t step = (size_t)gridDim.x * THREADS;
  for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step)
    c[i] = a[i] + s * b[i];
}

// tiled-stencil: 16 x 16 thread blocks, not at the grid's edge
__global__ void stencil(const float *src, float *dst, size_t n) {
  size_t row = (size_t)blockIdx.y * TILE + threadIdx.y;
  size_t col = (size_t)blockIdx.x * TILE + threadIdx.x;
  if (row < 1 || col < 1 || row + 1 >= n || col + 1 >= n) return;
  size_t i = row * n + col;
  dst[i] = 0.25f * (src[i - n] + src[i + n] + src[i - 1] + src[i + 1]);
}

// ---- Timing

static cudaEvent_t begin_event, end_event;

// Return the nanoseconds that the GPU needs for what `launch` starts.
template <class Launch> static double timed(Launch launch) {
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaEventRecord(begin_event));
  launch();
  CHECK(cudaGetLastError());
  CHECK(cudaEventRecord(end_event));
  CHECK(cudaEventSynchronize(end_event));
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, begin_event, end_event));
  return ms * 1e6;
}

static void row(const char *kind, size_t bytes, size_t near, const char *detail, int launch,
                int repeat, double ns) {
  printf("%s,%zu,%zu,%s,%d,%d,%.0f\n", kind, bytes, near, detail, launch, repeat, ns);
  fflush(stdout);
}

// ---- Managed arrays

// Allocate managed memory, and have the host write all of it: the data begin in host memory.
static void *managed(size_t bytes) {
  void *a = nullptr;
  CHECK(cudaMallocManaged(&a, bytes));
  memset(a, 1, bytes);
  return a;
}

static size_t free_memory() {
  size_t left = 0, total = 0;
  CHECK(cudaMemGetInfo(&left, &total));
  return left;
}

// Take the card's memory until about `room` is left, and return what is left.
static size_t inflate(size_t room) {
  for (size_t piece = GIB; piece >= BLOCK; piece /= 2) {
    void *held = nullptr;
    while (free_memory() >= room + piece && cudaMalloc(&held, piece) == cudaSuccess) {}
    cudaGetLastError();  // a refusal only means that the piece is too large
  }
  size_t left = free_memory();
  if (left > room + room / 8) refuse("the balloon cannot take the card's memory");
  return left;
}

// Return n random words, one in each of `pages` 4 KiB pages of every 2 MiB block, blocks shuffled.
static std::vector<size_t> sparse_words(size_t bytes, size_t pages) {
  unsigned long long state = 88172645463325252ull;
  auto below = [&state](size_t limit) {  // xorshift
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (size_t)(state % limit);
  };
  std::vector<size_t> blocks(bytes / BLOCK), inside(BLOCK / PAGE), words;
  for (size_t i = 0; i < blocks.size(); i++) blocks[i] = i;
  for (size_t i = blocks.size(); i > 1; i--) std::swap(blocks[i - 1], blocks[below(i)]);
  for (size_t block : blocks) {
    for (size_t i = 0; i < inside.size(); i++) inside[i] = i;
    for (size_t i = 0; i < pages; i++) {
      std::swap(inside[i], inside[i + below(inside.size() - i)]);
      words.push_back((block * BLOCK + inside[i] * PAGE) / sizeof(unsigned));
    }
  }
  return words;
}

// ---- Measurements

static void measure_copies() {
  char *host[2], *device[2];
  cudaStream_t stream[2];
  cudaEvent_t other;
  CHECK(cudaEventCreateWithFlags(&other, cudaEventDisableTiming));
  for (int i = 0; i < 2; i++) {
    CHECK(cudaMallocHost((void **)&host[i], LARGEST_COPY));
    memset(host[i], 1, LARGEST_COPY);
    CHECK(cudaMalloc((void **)&device[i], LARGEST_COPY));
    CHECK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
  }
  const char *kinds[] = {"copy-in", "copy-out", "copy-both"};
  for (size_t bytes = PAGE; bytes <= LARGEST_COPY; bytes *= 4) {
    int times = bytes >= LARGEST_COPY ? 4 : LARGEST_COPY / bytes > 64 ? 64 : LARGEST_COPY / bytes;
    for (int way = 0; way < 3; way++) {
      for (int repeat = 0; repeat <= REPEATS; repeat++) {  // 0 warms up
        double ns = timed([&] {  // both streams begin and end with the default stream's events
          for (int i = 0; i < 2; i++) CHECK(cudaStreamWaitEvent(stream[i], begin_event, 0));
          for (int n = 0; n < times; n++) {
            if (way != 1)
              CHECK(cudaMemcpyAsync(device[0], host[0], bytes, cudaMemcpyHostToDevice, stream[0]));
            if (way != 0)
              CHECK(cudaMemcpyAsync(host[1], device[1], bytes, cudaMemcpyDeviceToHost, stream[1]));
          }
          for (int i = 0; i < 2; i++) {
            CHECK(cudaEventRecord(other, stream[i]));
            CHECK(cudaStreamWaitEvent(0, other, 0));
          }
        });
        if (repeat) row(kinds[way], bytes, 0, "", 0, repeat, ns / times);
      }
    }
  }
  for (int i = 0; i < 2; i++) {
    CHECK(cudaFreeHost(host[i]));
    CHECK(cudaFree(device[i]));
    CHECK(cudaStreamDestroy(stream[i]));
  }
}

// Pages of 64 KiB of three blocks, and at last one that is near already: what a launch costs.
static void measure_page_order(size_t near, unsigned *out) {
  const size_t bytes = 4 * BLOCK, leaves[] = {0, 1, 2, 4, 8, 16}, per_block = BLOCK / LEAF;
  std::vector<size_t> order;
  for (size_t block = 0; block < 3; block++)
    for (size_t leaf : leaves) order.push_back(block * per_block + leaf);
  order.push_back(order.back());
  std::vector<char> detail;
  for (size_t page : order) {
    char text[16];
    int length = snprintf(text, sizeof text, detail.empty() ? "%zu" : "+%zu", page);
    detail.insert(detail.end(), text, text + length);
  }
  detail.push_back(0);
  for (int repeat = 0; repeat <= REPEATS; repeat++) {  // 0 warms up
    unsigned *a = (unsigned *)managed(bytes);
    for (size_t n = 0; n < order.size(); n++) {
      size_t word = order[n] * LEAF / sizeof(unsigned);
      double ns = timed([&] { touch<<<1, 1>>>(a, word, out); });
      if (repeat) row("page-order", bytes, near, detail.data(), (int)n + 1, repeat, ns);
    }
    CHECK(cudaFree(a));
  }
}

static void measure_sparse(size_t near, size_t bytes, size_t pages, int passes, size_t *words) {
  std::vector<size_t> chosen = sparse_words(bytes, pages);
  size_t n = chosen.size();
  CHECK(cudaMemcpy(words, chosen.data(), n * sizeof(size_t), cudaMemcpyHostToDevice));
  char detail[16];
  snprintf(detail, sizeof detail, "%zu", pages);
  for (int repeat = 1; repeat <= REPEATS; repeat++) {
    unsigned *a = (unsigned *)managed(bytes);
    for (int pass = 1; pass <= passes; pass++) {
      double ns = timed([&] {
        sparse<<<(unsigned)((n + THREADS - 1) / THREADS), THREADS>>>(a, words, n);
      });
      row("sparse", bytes, near, detail, pass, repeat, ns);
    }
    CHECK(cudaFree(a));
  }
}

static void measure_sequence(size_t near, size_t bytes, int passes) {
  size_t half = bytes / 2, threads = (size_t)SEQUENCE_BLOCKS * THREADS;
  size_t part = ((half + threads - 1) / threads + PAGE - 1) / PAGE * PAGE / sizeof(float);
  for (int repeat = 1; repeat <= REPEATS; repeat++) {
    float *in = (float *)managed(half), *out = (float *)managed(half);
    for (int pass = 1; pass <= passes; pass++) {
      double ns = timed([&] {
        sequence<<<SEQUENCE_BLOCKS, THREADS>>>(in, out, half / sizeof(float), part);
      });
      row("sequence", bytes, near, "", pass, repeat, ns);
    }
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
  }
}

static void measure_triad(size_t near, size_t bytes) {
  size_t n = bytes / (3 * sizeof(float)), grid = (n + THREADS - 1) / THREADS;
  for (int repeat = 1; repeat <= REPEATS; repeat++) {
    float *a = (float *)managed(n * sizeof(float)), *b = (float *)managed(n * sizeof(float));
    float *c = (float *)managed(n * sizeof(float));
    double ns = timed([&] {
      triad<<<(unsigned)(grid < 65535 ? grid : 65535), THREADS>>>(a, b, c, 3.0f, n);
    });
    row("triad", bytes, near, "", 1, repeat, ns);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(c));
  }
}

static void measure_stencil(size_t near, size_t n, int iterations) {
  size_t bytes = n * n * sizeof(float);
  dim3 grid((unsigned)((n + TILE - 1) / TILE), (unsigned)((n + TILE - 1) / TILE));
  dim3 threads(TILE, TILE);
  char detail[16];
  snprintf(detail, sizeof detail, "%d", iterations);
  for (int repeat = 1; repeat <= REPEATS; repeat++) {
    float *even = (float *)managed(bytes), *odd = (float *)managed(bytes);
    double ns = timed([&] {
      for (int i = 0; i < iterations; i++)
        stencil<<<grid, threads>>>(i % 2 ? odd : even, i % 2 ? even : odd, n);
    });
    row("stencil", 2 * bytes, near, detail, 0, repeat, ns);
    CHECK(cudaFree(even));
    CHECK(cudaFree(odd));
  }
}

// ---- The card and its host

static int attribute(cudaDeviceAttr name) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, name, 0) != cudaSuccess) cudaGetLastError();
  return value;
}

// Print what stands behind `marker` in the first line of a file that has it, up to a blank if
// `word`.
static void print_from(const char *key, const char *file, const char *marker, bool word) {
  FILE *from = fopen(file, "r");
  char line[512];
  while (from && fgets(line, sizeof line, from)) {
    char *found = strstr(line, marker);
    if (!found) continue;
    found += strlen(marker);
    found += strspn(found, " \t:");
    found[strcspn(found, word ? " \t\n" : "\n")] = 0;
    printf("# %s=%s\n", key, found);
    break;
  }
  if (from) fclose(from);
}

static void print_card(const cudaDeviceProp &card) {
  int driver = 0, runtime = 0;
  CHECK(cudaDriverGetVersion(&driver));
  CHECK(cudaRuntimeGetVersion(&runtime));
  time_t now = time(nullptr);
  char date[32];
  strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
  printf("# tidegate probe=1\n# date=%s\n# card=%s\n", date, card.name);
  print_from("driver", "/proc/driver/nvidia/version", "Kernel Module", false);
  print_from("host", "/proc/cpuinfo", "model name", false);
  print_from("kernel", "/proc/sys/kernel/osrelease", "", true);
  printf("# cuda=%d\n# runtime=%d\n# compute=%d.%d\n", driver, runtime, card.major, card.minor);
  printf("# sms=%d\n# threads_per_sm=%d\n", card.multiProcessorCount,
         card.maxThreadsPerMultiProcessor);
  printf("# bytes=%zu\n# bus_bits=%d\n", card.totalGlobalMem,
         attribute(cudaDevAttrGlobalMemoryBusWidth));
  printf("# memory_khz=%d\n# clock_khz=%d\n", attribute(cudaDevAttrMemoryClockRate),
         attribute(cudaDevAttrClockRate));
}

int main() {
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // no kernel is loaded while it is measured
  int cards = 0;
  if (cudaGetDeviceCount(&cards) != cudaSuccess || cards == 0) refuse("there is no CUDA card");
  CHECK(cudaSetDevice(0));
  cudaDeviceProp card;
  CHECK(cudaGetDeviceProperties(&card, 0));
  if (!card.concurrentManagedAccess)
    refuse("this card and system do not fault on managed memory (concurrentManagedAccess is 0); "
           "it takes Pascal or newer, on Linux");
  CHECK(cudaEventCreate(&begin_event));
  CHECK(cudaEventCreate(&end_event));
  print_card(card);
  printf("kind,bytes,near,detail,launch,repeat,ns\n");
  measure_copies();

  size_t room = ROOM, words_bytes = ROOM / PAGE * sizeof(size_t);
  while (room >= LEAST_ROOM && free_memory() < room + words_bytes + 64 * MIB) room /= 2;
  if (room < LEAST_ROOM) refuse("less than 600 MiB of the card's memory are free; close programs");
  size_t *words = nullptr;
  unsigned *out = nullptr;
  CHECK(cudaMalloc((void **)&words, words_bytes));
  CHECK(cudaMalloc((void **)&out, sizeof *out));
  size_t near = inflate(room) / BLOCK * BLOCK;
  size_t in = near / 4 * 3 / BLOCK * BLOCK, over = near / 2 * 3 / BLOCK * BLOCK;

  measure_page_order(near, out);
  for (size_t pages : {1, 8, 512}) measure_sparse(near, in, pages, 1, words);
  for (size_t pages : {1, 64}) measure_sparse(near, over, pages, 2, words);
  measure_sequence(near, near / 4 * 5 / BLOCK * BLOCK, 2);
  measure_sequence(near, over, 2);
  measure_triad(near, in / 6 * 3 / 12 * 12);
  measure_stencil(near, room >= ROOM ? 8192 : 4096, 20);
  printf("# complete=1\n");
  return 0;
}
