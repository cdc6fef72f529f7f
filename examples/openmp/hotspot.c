// The temperature of a chip, in the shape of Rodinia's hotspot: one region, a five-point stencil from one buffer into the
// other, and the two change places after each step.
//   hotspot [cells along a side 64] [steps 8] [seed 1]
#include "example.h"

#define AMBIENT 80.0f

static void single_iteration(int side, float *result, const float *temp, const float *power) {
  int n = side * side;
  LAUNCH(temp, power, result);
#pragma omp target teams distribute parallel for collapse(2) map(to : temp[0 : n], power[0 : n]) map(from : result[0 : n])
  for (int y = 0; y < side; y++)
    for (int x = 0; x < side; x++) {
      int i = y * side + x;
      float here = temp[i];
      float up = temp[y > 0 ? i - side : i], down = temp[y < side - 1 ? i + side : i];
      float left = temp[x > 0 ? i - 1 : i], right = temp[x < side - 1 ? i + 1 : i];
      float change = power[i] + 0.1f * (up + down - 2 * here) + 0.1f * (left + right - 2 * here) + 0.01f * (AMBIENT - here);
      result[i] = here + 0.5f * change;
    }
}

int main(int argc, char **argv) {
  int side = argument(argc, argv, 1, "cells along a side", 64);
  int steps = argument(argc, argv, 2, "steps", 8);
  uint64_t random = random_from(argument(argc, argv, 3, "seed", 1));
  int n = times(side, side);

  float *temp = allocate(n, sizeof(float));
  OBJECT(temp, n * sizeof(float));
  float *power = allocate(n, sizeof(float));
  OBJECT(power, n * sizeof(float));
  float *result = allocate(n, sizeof(float));
  OBJECT(result, n * sizeof(float));
  for (int i = 0; i < n; i++) {
    temp[i] = AMBIENT + 10 * random_unit(&random);
    power[i] = random_unit(&random);
  }

  float *from = temp, *to = result;
#pragma omp target data map(tofrom : temp[0 : n], result[0 : n]) map(to : power[0 : n])
  for (int step = 0; step < steps; step++) {
    single_iteration(side, to, from, power);
    float *swapped = from;
    from = to;
    to = swapped;
  }

  double sum = 0;
  for (int i = 0; i < n; i++) sum += from[i];
  printf("checksum %.6g\n", sum);
  free(temp), free(power), free(result);
  return 0;
}
