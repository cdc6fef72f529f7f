// Speckle-reducing diffusion of an image, in the shape of Rodinia's srad (version 1): spread the values, then repeatedly
// take the image's statistics, the diffusion coefficient of each pixel and the step itself, then compress them again.
//   srad [rows 64] [columns 64] [iterations 4] [seed 1]
#include "example.h"

#define LAMBDA 0.5f

static void extract(int n, float *image) {
  LAUNCH(image);
#pragma omp target teams distribute parallel for map(tofrom : image[0 : n])
  for (int i = 0; i < n; i++) image[i] = expf(image[i] / 255);
}

// The square of the speckle's coefficient of variation, over the whole image.
static float speckle(int n, const float *image) {
  double sum = 0, squares = 0;
  LAUNCH(image);
#pragma omp target teams distribute parallel for map(to : image[0 : n]) map(tofrom : sum, squares) reduction(+ : sum, squares)
  for (int i = 0; i < n; i++) {
    sum += image[i];
    squares += image[i] * image[i];
  }
  double mean = sum / n;
  return (float)((squares / n - mean * mean) / (mean * mean));
}

static void coefficients(int rows, int columns, float q0, const float *image, const int *north, const int *south,
                         const int *west, const int *east, float *dn, float *ds, float *dw, float *de, float *c) {
  int n = rows * columns;
  LAUNCH(image, north, south, west, east, dn, ds, dw, de, c);
#pragma omp target teams distribute parallel for collapse(2) map(to : image[0 : n], north[0 : rows], south[0 : rows]) \
    map(to : west[0 : columns], east[0 : columns]) map(from : dn[0 : n], ds[0 : n], dw[0 : n], de[0 : n], c[0 : n])
  for (int y = 0; y < rows; y++)
    for (int x = 0; x < columns; x++) {
      int i = y * columns + x;
      float here = image[i];
      dn[i] = image[north[y] * columns + x] - here;
      ds[i] = image[south[y] * columns + x] - here;
      dw[i] = image[y * columns + west[x]] - here;
      de[i] = image[y * columns + east[x]] - here;
      float gradient = (dn[i] * dn[i] + ds[i] * ds[i] + dw[i] * dw[i] + de[i] * de[i]) / (here * here);
      float laplacian = (dn[i] + ds[i] + dw[i] + de[i]) / here;
      float spread = 1 + 0.25f * laplacian;
      float q = (0.5f * gradient - 0.0625f * laplacian * laplacian) / (spread * spread);
      float value = 1 / (1 + (q - q0) / (q0 * (1 + q0)));
      c[i] = value < 0 ? 0 : value > 1 ? 1 : value;
    }
}

static void diffuse(int rows, int columns, float *image, const int *south, const int *east, const float *dn, const float *ds,
                    const float *dw, const float *de, const float *c) {
  int n = rows * columns;
  LAUNCH(image, south, east, dn, ds, dw, de, c);
#pragma omp target teams distribute parallel for collapse(2) map(tofrom : image[0 : n]) map(to : south[0 : rows]) \
    map(to : east[0 : columns], dn[0 : n], ds[0 : n], dw[0 : n], de[0 : n], c[0 : n])
  for (int y = 0; y < rows; y++)
    for (int x = 0; x < columns; x++) {
      int i = y * columns + x;
      float cs = c[south[y] * columns + x], ce = c[y * columns + east[x]];
      image[i] += 0.25f * LAMBDA * (c[i] * dn[i] + cs * ds[i] + c[i] * dw[i] + ce * de[i]);
    }
}

static void compress(int n, float *image) {
  LAUNCH(image);
#pragma omp target teams distribute parallel for map(tofrom : image[0 : n])
  for (int i = 0; i < n; i++) image[i] = logf(image[i]) * 255;
}

static void make_neighbours(int count, int *before, int *after) {
  for (int i = 0; i < count; i++) {
    before[i] = i > 0 ? i - 1 : 0;
    after[i] = i < count - 1 ? i + 1 : i;
  }
}

int main(int argc, char **argv) {
  int rows = argument(argc, argv, 1, "rows", 64);
  int columns = argument(argc, argv, 2, "columns", 64);
  int iterations = argument(argc, argv, 3, "iterations", 4);
  uint64_t random = random_from(argument(argc, argv, 4, "seed", 1));
  int n = times(rows, columns);

  float *image = allocate(n, sizeof(float));
  OBJECT(image, n * sizeof(float));
  int *north = allocate(rows, sizeof(int));
  OBJECT(north, rows * sizeof(int));
  int *south = allocate(rows, sizeof(int));
  OBJECT(south, rows * sizeof(int));
  int *west = allocate(columns, sizeof(int));
  OBJECT(west, columns * sizeof(int));
  int *east = allocate(columns, sizeof(int));
  OBJECT(east, columns * sizeof(int));
  float *dn = allocate(n, sizeof(float));
  OBJECT(dn, n * sizeof(float));
  float *ds = allocate(n, sizeof(float));
  OBJECT(ds, n * sizeof(float));
  float *dw = allocate(n, sizeof(float));
  OBJECT(dw, n * sizeof(float));
  float *de = allocate(n, sizeof(float));
  OBJECT(de, n * sizeof(float));
  float *c = allocate(n, sizeof(float));
  OBJECT(c, n * sizeof(float));
  make_neighbours(rows, north, south);
  make_neighbours(columns, west, east);
  for (int i = 0; i < n; i++) image[i] = 255 * random_unit(&random);

#pragma omp target data map(tofrom : image[0 : n]) map(to : north[0 : rows], south[0 : rows], west[0 : columns]) \
    map(to : east[0 : columns]) map(alloc : dn[0 : n], ds[0 : n], dw[0 : n], de[0 : n], c[0 : n])
  {
    extract(n, image);
    for (int iteration = 0; iteration < iterations; iteration++) {
      float q0 = speckle(n, image);
      coefficients(rows, columns, q0, image, north, south, west, east, dn, ds, dw, de, c);
      diffuse(rows, columns, image, south, east, dn, ds, dw, de, c);
    }
    compress(n, image);
  }

  double sum = 0;
  for (int i = 0; i < n; i++) sum += image[i];
  printf("checksum %.6g\n", sum);
  free(image), free(north), free(south), free(west), free(east);
  free(dn), free(ds), free(dw), free(de), free(c);
  return 0;
}
