// The nearest neighbours of a place, in the shape of Rodinia's nn: one region, launched once, works out every record's
// distance; the host picks the nearest few.
//   nn [records 4096] [neighbours 5] [seed 1]
#include "example.h"

struct place { float latitude, longitude; };

static void euclid(int n, const struct place *locations, float *distances, float latitude, float longitude) {
  LAUNCH(locations, distances);
#pragma omp target teams distribute parallel for map(to : locations[0 : n]) map(from : distances[0 : n])
  for (int i = 0; i < n; i++) {
    float dy = latitude - locations[i].latitude, dx = longitude - locations[i].longitude;
    distances[i] = sqrtf(dy * dy + dx * dx);
  }
}

int main(int argc, char **argv) {
  int n = argument(argc, argv, 1, "records", 4096);
  int wanted = argument(argc, argv, 2, "neighbours", 5);
  uint64_t random = random_from(argument(argc, argv, 3, "seed", 1));

  struct place *locations = allocate(n, sizeof(struct place));
  OBJECT(locations, n * sizeof(struct place));
  float *distances = allocate(n, sizeof(float));
  OBJECT(distances, n * sizeof(float));
  for (int i = 0; i < n; i++) {
    locations[i].latitude = 180 * random_unit(&random) - 90;
    locations[i].longitude = 360 * random_unit(&random) - 180;
  }

  euclid(n, locations, distances, 30, 90);

  double sum = 0;
  for (int k = 0; k < wanted && k < n; k++) {
    int nearest = 0;
    for (int i = 1; i < n; i++)
      if (distances[i] < distances[nearest]) nearest = i;
    sum += distances[nearest];
    distances[nearest] = INFINITY;
  }
  printf("checksum %.6g\n", sum);
  free(locations), free(distances);
  return 0;
}
