/* Large blocks of malloc from an arena, in programs that do not know of it.
 *
 *     malloc, calloc, realloc, memalign ...   small ──▶ glibc    large ──▶ units of a range
 *     free                                    an address of the range ──▶ its units are free
 *
 * The range is one object of an arena, so using it is served by the pager. Nothing here calls Python,
 * waits for the pager with the lock held, or allocates. Until tidegate_catch_begin all is glibc's. A
 * forked child does not have the range: there all is glibc's again.
 *
 * Compiled on demand by catch.py, and preloaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static struct {
    char *low, *high;
    size_t unit, units, least;
    const char *callers;  /* part of the file name of the library that may ask; "": any */
    int32_t *length;      /* by unit: of the block that begins there; 0: free; -1: within a block */
    size_t *bytes;        /* by unit: of the block that begins there */
    size_t fresh;         /* units from here on were never used, and read as zeros */
    int active;
    uint64_t blocks, outside;  /* taken so far; those for which there was no room */
    size_t used, most;         /* units */
} heap;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t (*usable_size)(void *);

__attribute__((constructor)) static void find_next(void) {
    usable_size = (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size");
}

static int is_ours(const void *p) { return (char *)p >= heap.low && (char *)p < heap.high; }

static size_t unit_of(const void *p) { return (size_t)((char *)p - heap.low) / heap.unit; }

static int is_wanted(const void *caller) {
    Dl_info info;
    if (!*heap.callers) return 1;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, heap.callers);
}

/* Return the first of n free units in a row, or heap.units. */
static size_t find_units(size_t n) {
    size_t at = 0;
    while (at + n <= heap.units) {
        size_t run = 0;
        while (run < n && heap.length[at + run] == 0) run++;
        if (run == n) return at;
        at += run;
        at += heap.length[at] > 0 ? (size_t)heap.length[at] : 1;
    }
    return heap.units;
}

static void *take(size_t size, size_t align, int zero, const void *caller) {
    if (!heap.active || size < heap.least || align > heap.unit || !is_wanted(caller)) return NULL;
    if (size > heap.units * heap.unit) {
        __atomic_add_fetch(&heap.outside, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    size_t n = (size + heap.unit - 1) / heap.unit, old = 0;
    pthread_mutex_lock(&lock);
    size_t at = find_units(n);
    if (at == heap.units) {
        heap.outside++;
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    heap.length[at] = (int32_t)n;
    for (size_t i = 1; i < n; i++) heap.length[at + i] = -1;
    heap.bytes[at] = size;
    if (at < heap.fresh) old = (heap.fresh < at + n ? heap.fresh - at : n) * heap.unit;
    if (at + n > heap.fresh) heap.fresh = at + n;
    heap.blocks++;
    heap.used += n;
    if (heap.used > heap.most) heap.most = heap.used;
    pthread_mutex_unlock(&lock);
    char *found = heap.low + at * heap.unit;
    if (zero && old) memset(found, 0, old < size ? old : size);
    return found;
}

static void give_back(void *p) {
    if (!heap.length) return; /* a forked child, which does not have it */
    pthread_mutex_lock(&lock);
    size_t at = unit_of(p), n = (size_t)heap.length[at];
    heap.used -= n;
    for (size_t i = 0; i < n; i++) heap.length[at + i] = 0;
    pthread_mutex_unlock(&lock);
}

void *malloc(size_t size) {
    void *found = take(size, 1, 0, __builtin_return_address(0));
    return found ? found : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    size_t all;
    if (!__builtin_mul_overflow(count, size, &all)) {
        void *found = take(all, 1, 1, __builtin_return_address(0));
        if (found) return found;
    }
    return __libc_calloc(count, size);
}

void *realloc(void *p, size_t size) {
    const void *caller = __builtin_return_address(0);
    if (!is_ours(p)) {
        void *found = take(size, 1, 0, caller);
        if (!found) return __libc_realloc(p, size);
        if (p) {
            size_t before = usable_size(p);
            memcpy(found, p, before < size ? before : size);
            __libc_free(p);
        }
        return found;
    }
    if (size == 0) {
        give_back(p);
        return NULL;
    }
    size_t at = unit_of(p), before = heap.bytes[at];
    if (size >= heap.least && size <= (size_t)heap.length[at] * heap.unit) {
        heap.bytes[at] = size;
        return p;
    }
    void *found = take(size, 1, 0, caller);
    if (!found) found = __libc_malloc(size);
    if (!found) return NULL;
    memcpy(found, p, before < size ? before : size);
    give_back(p);
    return found;
}

void free(void *p) {
    if (is_ours(p)) give_back(p);
    else __libc_free(p);
}

int posix_memalign(void **to, size_t align, size_t size) {
    if (align % sizeof(void *) || align == 0 || align & (align - 1)) return EINVAL;
    void *found = take(size, align, 0, __builtin_return_address(0));
    if (!found) found = __libc_memalign(align, size);
    if (!found) return ENOMEM;
    *to = found;
    return 0;
}

void *aligned_alloc(size_t align, size_t size) {
    void *found = take(size, align, 0, __builtin_return_address(0));
    return found ? found : __libc_memalign(align, size);
}

void *memalign(size_t align, size_t size) {
    void *found = take(size, align, 0, __builtin_return_address(0));
    return found ? found : __libc_memalign(align, size);
}

size_t malloc_usable_size(void *p) {
    if (is_ours(p)) return heap.bytes[unit_of(p)];
    return p && usable_size ? usable_size(p) : 0;
}

/* A child has neither the range nor, perhaps, the lock. */
static void forget(void) {
    heap.active = 0;
    heap.length = NULL;
}

/* Take blocks of `least` bytes or more from this range. Return 0, or -1 for want of memory. */
int tidegate_catch_begin(char *low, size_t units, size_t unit, size_t least, const char *callers) {
    heap.length = __libc_calloc(units, sizeof *heap.length);
    heap.bytes = __libc_calloc(units, sizeof *heap.bytes);
    heap.callers = strcpy(__libc_malloc(strlen(callers) + 1), callers);
    if (!heap.length || !heap.bytes || !heap.callers) return -1;
    heap.unit = unit;
    heap.units = units;
    heap.least = least;
    heap.low = low;
    heap.high = low + units * unit;
    pthread_atfork(NULL, NULL, forget);
    __atomic_store_n(&heap.active, 1, __ATOMIC_RELEASE);
    return 0;
}

/* Take no more blocks; those that were taken stay. */
void tidegate_catch_end(uint64_t *blocks, uint64_t *outside, uint64_t *most) {
    heap.active = 0;
    *blocks = heap.blocks;
    *outside = heap.outside;
    *most = heap.most * heap.unit;
}
