// What every example needs and none is about: arguments, memory, random numbers, and telling its launches.
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The i-th argument, a whole number from 1 to 2^30, or what stands in for it when it is not given.
static inline int argument(int argc, char **argv, int i, const char *name, int otherwise) {
  if (i >= argc) return otherwise;
  char *end;
  long value = strtol(argv[i], &end, 10);
  if (end == argv[i] || *end != '\0' || value < 1 || value > 1L << 30) {
    fprintf(stderr, "%s: %s is '%s'; give a whole number from 1 to %ld\n", argv[0], name, argv[i], 1L << 30);
    exit(2);
  }
  return (int)value;
}

// a × b as an int, which the examples index with, as the originals do; sizes beyond it are refused, not wrapped.
static inline int times(int a, int b) {
  if ((long)a * b > INT32_MAX) {
    fprintf(stderr, "%d times %d is more than the examples can index, %d; give smaller sizes\n", a, b, INT32_MAX);
    exit(2);
  }
  return a * b;
}

static inline void *allocate(size_t count, size_t size) {
  void *memory = malloc(count * size);
  if (memory == NULL) {
    fprintf(stderr, "no room for %zu bytes; give smaller sizes\n", count * size);
    exit(2);
  }
  return memory;
}

// xorshift64*: the same numbers from the same seed on every machine, which rand() does not promise.
static inline uint64_t random_bits(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

static inline uint64_t random_from(int seed) { return UINT64_C(88172645463325252) + (uint64_t)seed; }
static inline float random_unit(uint64_t *state) { return (float)(random_bits(state) >> 40) / (float)(1 << 24); }
static inline int random_below(uint64_t *state, int bound) { return (int)(random_bits(state) % (uint64_t)bound); }

// OBJECT(p, bytes) after an allocation, LAUNCH(p, q, …) on the line before a target region's pragma. Pointers are looked up
// by address, so that a swapped buffer is told by the name of its allocation. A compile-time switch, not a variable of the
// environment: without it the program that is analysed holds no trace of the telling.
#ifdef PRINT_LAUNCHES
static struct { const void *at; const char *name; } told[32];
static int told_count;

static inline void tell_object(const char *name, const void *at, size_t bytes) {
  told[told_count].at = at;
  told[told_count++].name = name;
  printf("object %s %zu\n", name, bytes);
}

static inline void tell_launch(const char *function, int line, const void *const *objects) {
  printf("launch %s:%d", function, line);
  for (; *objects != NULL; objects++)
    for (int i = 0; i < told_count; i++)
      if (told[i].at == *objects) printf(" %s", told[i].name);
  printf("\n");
}

#define OBJECT(pointer, bytes) tell_object(#pointer, pointer, bytes)
#define LAUNCH(...) tell_launch(__func__, __LINE__ + 1, (const void *const[]){__VA_ARGS__, NULL})
#else
#define OBJECT(pointer, bytes)
#define LAUNCH(...)
#endif

#endif
