/* Logs what an OpenMP program really does: linked into it by benchmarks/truth.py.

   Regions run on the host. A log has a line for each launch, and one for each allocation that a
   launch uses:

     O object site bytes          site: addresses of the calls that led to the allocation
     L kernel trips arguments touched
        arguments: number:object,…   touched: object:pages:pages in all:written,…

   Every allocation has pages of its own (small ones: lines of 64 bytes), so a page says whose it
   is. A page counts once for each launch: by the launch's number, which is stamped on it. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define LINE 64u
#define LARGE_ARENA (6ull << 30)
#define SMALL_ARENA (1ull << 30)
#define MOST_OBJECTS (1u << 25)
#define MOST_LAUNCHES 20000u
#define DEPTH 24
#define LITERAL 0x100 /* map type of a value */

/* Memory in units of one size, handed out in order; small units are used again after free. */
struct arena {
  char *base;
  uint64_t bytes, used;
  unsigned unit;
  uint32_t *owner, *stamp, *write_stamp; /* by unit */
};
struct object {
  char *start;
  uint64_t bytes;
  uintptr_t site[DEPTH];
  uint32_t launch, pages, written; /* in the launch of that number */
  char logged;
};

static struct arena large = {.bytes = LARGE_ARENA, .unit = PAGE};
static struct arena small = {.bytes = SMALL_ARENA, .unit = LINE};
static struct object *objects;
static uint32_t count_of_objects = 1; /* 0: none */
static char *reusable[PAGE / LINE + 1];
static volatile int busy;

static uint32_t launch; /* number of the one under way, from 1 */
static int inside;      /* a launch is under way */
static uint32_t touched[4096];
static int count_of_touched;

struct arguments { /* of libomptarget: what of it is used here */
  uint32_t version, count;
  void **bases, **pointers;
  int64_t *sizes, *types;
  void **names, **mappers;
  uint64_t trips;
};
static struct arguments *pending;
static char arguments_text[8192];

static int log_file = -1;
static char text[1 << 16];
static size_t length;

extern char __executable_start, etext;

static void flush(void) {
  size_t done = 0;
  while (log_file >= 0 && done < length) {
    ssize_t n = write(log_file, text + done, length - done);
    if (n <= 0) break;
    done += (size_t)n;
  }
  length = 0;
}

static void say(const char *word) {
  size_t n = strlen(word);
  if (length + n > sizeof text) flush();
  if (n <= sizeof text) memcpy(text + length, word, n), length += n;
}

static void say_number(const char *before, uint64_t n) {
  char digits[24], *at = digits + sizeof digits - 1;
  *at = 0;
  do *--at = (char)('0' + n % 10); while (n /= 10);
  say(before);
  say(at);
}

static void stop(int number) {
  flush();
  _exit(128 + number);
}

static void *reserve(uint64_t bytes) {
  void *p = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) _exit(99);
  return p;
}

static void start_arena(struct arena *a) {
  uint64_t stamps = a->bytes / a->unit * sizeof(uint32_t);
  a->base = reserve(a->bytes);
  a->owner = reserve(stamps);
  a->stamp = reserve(stamps);
  a->write_stamp = reserve(stamps);
}

static void start(void) {
  if (objects) return;
  objects = reserve(MOST_OBJECTS * sizeof *objects);
  start_arena(&large);
  start_arena(&small);
  const char *path = getenv("TIDEGATE_TRUTH");
  if (path) log_file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  int numbers[] = {SIGXCPU, SIGTERM, SIGSEGV, SIGABRT, SIGFPE, SIGINT};
  for (unsigned n = 0; n < sizeof numbers / sizeof *numbers; n++) signal(numbers[n], stop);
}

__attribute__((destructor)) static void end(void) { flush(); }

static struct arena *arena_of(const void *p) {
  const char *c = p;
  if (c >= large.base && c < large.base + large.used) return &large;
  if (c >= small.base && c < small.base + small.used) return &small;
  return 0;
}

static uint32_t object_at(const void *p) {
  struct arena *a = arena_of(p);
  return a ? a->owner[((const char *)p - a->base) / a->unit] : 0;
}

static void lock(void) {
  while (__sync_lock_test_and_set(&busy, 1)) ;
}

/* Keeps the addresses of the calls, innermost first, by the frame pointers. */
static void keep_site(struct object *o, uintptr_t *frame) {
  int depth = 0;
  uintptr_t low = (uintptr_t)frame;
  memset(o->site, 0, sizeof o->site);
  while (frame && (uintptr_t)frame >= low && (uintptr_t)frame < low + (8u << 20) && depth < DEPTH) {
    uintptr_t back = frame[1];
    if (back >= (uintptr_t)&__executable_start && back < (uintptr_t)&etext) o->site[depth++] = back - 1;
    low = (uintptr_t)frame + 1;
    frame = (uintptr_t *)frame[0];
  }
}

static void *allocate(size_t bytes, size_t alignment, uintptr_t *frame) {
  lock();
  start();
  struct arena *a = bytes >= PAGE || alignment > LINE ? &large : &small;
  uint64_t unit = a->unit, rounded = (bytes + unit - 1) / unit * unit;
  if (!rounded) rounded = unit;
  char *p = 0;
  char **list = a == &small ? &reusable[rounded / LINE] : 0;
  if (list && *list) {
    p = *list;
    *list = *(char **)p;
  } else {
    uint64_t begin = alignment > unit ? (a->used + alignment - 1) / alignment * alignment : a->used;
    if (begin + rounded <= a->bytes && count_of_objects < MOST_OBJECTS) {
      p = a->base + begin;
      a->used = begin + rounded;
    }
  }
  if (p) {
    struct object *o = &objects[count_of_objects];
    o->start = p, o->bytes = bytes;
    keep_site(o, frame);
    uint64_t first = (uint64_t)(p - a->base) / unit;
    for (uint64_t n = 0; n < rounded / unit; n++) a->owner[first + n] = count_of_objects;
    count_of_objects++;
  }
  busy = 0;
  return p;
}

static void release(void *p) {
  struct arena *a = p ? arena_of(p) : 0;
  if (!a) return;
  struct object *o = &objects[object_at(p)];
  lock();
  if (a == &small) {
    uint64_t rounded = (o->bytes + LINE - 1) / LINE;
    char **list = &reusable[rounded ? rounded : 1];
    *(char **)p = *list;
    *list = p;
  } else {
    madvise(p, (o->bytes + PAGE - 1) / PAGE * PAGE, MADV_DONTNEED);
  }
  busy = 0;
}

#define HERE ((uintptr_t *)__builtin_frame_address(0))

void *malloc(size_t n) { return allocate(n, 1, HERE); }
void free(void *p) { release(p); }
void *calloc(size_t n, size_t each) {
  void *p = allocate(n * each, 1, HERE);
  if (p && arena_of(p) == &small) memset(p, 0, n * each);
  return p;
}
void *realloc(void *old, size_t n) {
  void *p = allocate(n, 1, HERE);
  if (p && old) {
    size_t held = objects[object_at(old)].bytes;
    memcpy(p, old, held < n ? held : n);
    release(old);
  }
  return p;
}
int posix_memalign(void **p, size_t alignment, size_t n) {
  *p = allocate(n, alignment, HERE);
  return *p ? 0 : 12;
}
void *aligned_alloc(size_t alignment, size_t n) { return allocate(n, alignment, HERE); }
void *memalign(size_t alignment, size_t n) { return allocate(n, alignment, HERE); }
void *_mm_malloc(size_t n, size_t alignment) { return allocate(n, alignment, HERE); }
void _mm_free(void *p) { release(p); }
size_t malloc_usable_size(void *p) { return p ? objects[object_at(p)].bytes : 0; }

/* operator new and delete: defined here, so that the frame above is the program's. */
void *_Znwm(size_t n) { return allocate(n, 1, HERE); }
void *_Znam(size_t n) { return allocate(n, 1, HERE); }
void *_ZnwmRKSt9nothrow_t(size_t n, void *t) { return (void)t, allocate(n, 1, HERE); }
void *_ZnamRKSt9nothrow_t(size_t n, void *t) { return (void)t, allocate(n, 1, HERE); }
void *_ZnwmSt11align_val_t(size_t n, size_t a) { return allocate(n, a, HERE); }
void *_ZnamSt11align_val_t(size_t n, size_t a) { return allocate(n, a, HERE); }
void _ZdlPv(void *p) { release(p); }
void _ZdaPv(void *p) { release(p); }
void _ZdlPvm(void *p, size_t n) { (void)n, release(p); }
void _ZdaPvm(void *p, size_t n) { (void)n, release(p); }
void _ZdlPvSt11align_val_t(void *p, size_t a) { (void)a, release(p); }
void _ZdaPvSt11align_val_t(void *p, size_t a) { (void)a, release(p); }
void _ZdlPvmSt11align_val_t(void *p, size_t n, size_t a) { (void)n, (void)a, release(p); }
void _ZdaPvmSt11align_val_t(void *p, size_t n, size_t a) { (void)n, (void)a, release(p); }

void *omp_target_alloc(size_t n, int device) { return (void)device, allocate(n, 1, HERE); }
void *llvm_omp_target_alloc_host(size_t n, int device) { return (void)device, allocate(n, 1, HERE); }
void *llvm_omp_target_alloc_shared(size_t n, int d) { return (void)d, allocate(n, 1, HERE); }
void *llvm_omp_target_alloc_device(size_t n, int d) { return (void)d, allocate(n, 1, HERE); }
void omp_target_free(void *p, int device) { (void)device, release(p); }
int omp_target_memcpy(void *to, const void *from, size_t n, size_t to_at, size_t at, int td, int fd) {
  (void)td, (void)fd;
  memmove((char *)to + to_at, (const char *)from + at, n);
  return 0;
}
int omp_target_is_present(const void *p, int device) { return (void)p, (void)device, 1; }
int omp_get_num_devices(void) { return 1; }
int omp_get_default_device(void) { return 0; }
int omp_is_initial_device(void) { return !inside; }

static void touch(const void *p, int written) {
  struct arena *a = arena_of(p);
  if (!a) return;
  uint64_t unit = (uint64_t)((const char *)p - a->base) / a->unit;
  if (a->stamp[unit] == launch && (!written || a->write_stamp[unit] == launch)) return;
  struct object *o = &objects[a->owner[unit]];
  if (o->launch != launch) {
    o->launch = launch, o->pages = 0, o->written = 0;
    if (count_of_touched < (int)(sizeof touched / sizeof *touched))
      touched[count_of_touched++] = a->owner[unit];
  }
  if (a->stamp[unit] != launch) o->pages++;
  a->stamp[unit] = launch;
  if (written) a->write_stamp[unit] = launch, o->written = 1;
}

static void touch_all(const char *p, uint64_t n, int written) {
  if (!inside || !n || !arena_of(p)) return;
  for (uint64_t at = 0; at < n; at += LINE) touch(p + at, written);
  touch(p + n - 1, written);
}

void tidegate_copied(void *to, void *from, uint64_t n) {
  touch_all(from, n, 0);
  touch_all(to, n, 1);
}
void tidegate_filled(void *to, uint64_t n) { touch_all(to, n, 1); }
void tidegate_updated(void *p) {
  if (inside) touch(p, 1);
}

#define COVER(n)                                                  \
  void __sanitizer_cov_load##n(void *p) { if (inside) touch(p, 0); } \
  void __sanitizer_cov_store##n(void *p) { if (inside) touch(p, 1); }
COVER(1) COVER(2) COVER(4) COVER(8) COVER(16)

static void say_object(uint32_t n) {
  struct object *o = &objects[n];
  if (!n || o->logged) return;
  o->logged = 1;
  say_number("O ", n);
  for (int d = 0; d < DEPTH && o->site[d]; d++) say_number(d ? "," : " ", o->site[d]);
  say_number(o->site[0] ? " " : " 0 ", o->bytes);
  say("\n");
}

/* The launch: refused, so that the program runs the region itself. */
int __tgt_target_kernel(void *ident, int64_t device, int32_t teams, int32_t threads, void *id, void *args) {
  (void)ident, (void)device, (void)teams, (void)threads, (void)id;
  pending = args;
  return 1;
}

static void keep_arguments(void) {
  size_t n = 0;
  arguments_text[0] = 0;
  for (uint32_t k = 0; k < pending->count && n + 64 < sizeof arguments_text; k++) {
    uint32_t o = object_at(pending->pointers[k]);
    if (pending->types[k] & LITERAL && !o) continue;
    say_object(o);
    uintptr_t at = (uintptr_t)pending->pointers[k];
    if (o) n += (size_t)sprintf(arguments_text + n, "%s%u:%u", n ? "," : "", k, o);
    else if (at >= (uintptr_t)&etext && at < (uintptr_t)sbrk(0))
      n += (size_t)sprintf(arguments_text + n, "%s%u:@%lu", n ? "," : "", k, (unsigned long)at);
  }
}

void tidegate_enter(void) {
  if (!pending || inside) return;
  keep_arguments();
  launch++;
  count_of_touched = 0;
  inside = 1;
}

void tidegate_leave(const char *kernel) {
  if (!inside) return;
  inside = 0;
  for (int n = 0; n < count_of_touched; n++) say_object(touched[n]);
  say("L ");
  say(kernel);
  say_number(" ", pending->trips);
  say(" ");
  say(arguments_text[0] ? arguments_text : "-");
  for (int n = 0; n < count_of_touched; n++) {
    struct object *o = &objects[touched[n]];
    unsigned unit = arena_of(o->start)->unit;
    say_number(n ? "," : " ", touched[n]);
    say_number(":", o->pages);
    say_number(":", (o->bytes + unit - 1) / unit);
    say_number(":", o->written);
  }
  say(count_of_touched ? "\n" : " -\n");
  pending = 0;
  if (launch >= MOST_LAUNCHES) stop(0);
}

/* Host and device share memory, so nothing is mapped. */
#define NOTHING(name) void name(void) {}
NOTHING(__tgt_target_data_begin_mapper)
NOTHING(__tgt_target_data_end_mapper)
NOTHING(__tgt_target_data_update_mapper)
NOTHING(__tgt_target_data_begin_nowait_mapper)
NOTHING(__tgt_target_data_end_nowait_mapper)
NOTHING(__tgt_target_data_update_nowait_mapper)
NOTHING(__tgt_register_lib)
NOTHING(__tgt_unregister_lib)
NOTHING(__tgt_register_requires)
NOTHING(__tgt_init_all_rtls)
NOTHING(__tgt_set_info_flag)
NOTHING(__tgt_push_mapper_component)
int64_t __tgt_mapper_num_components(void *h) { return (void)h, 0; }
