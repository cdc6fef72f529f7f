// K-means clustering, in the shape of Rodinia's kmeans: one region turns the features about once, a second finds each
// point's nearest centre; the host moves the centres, until few points change sides.
//   kmeans [points 2048] [features 8] [clusters 5] [seed 1]
#include "example.h"

#define MOST_ROUNDS 500

static void invert_mapping(int points, int features, const float *feature, float *feature_turned) {
  LAUNCH(feature, feature_turned);
#pragma omp target teams distribute parallel for map(to : feature[0 : points * features]) \
    map(from : feature_turned[0 : points * features])
  for (int p = 0; p < points; p++)
    for (int f = 0; f < features; f++) feature_turned[f * points + p] = feature[p * features + f];
}

static int find_nearest(int points, int features, int clusters, const float *feature_turned, const float *centres,
                        int *membership) {
  int changed = 0;
  LAUNCH(feature_turned, centres, membership);
#pragma omp target teams distribute parallel for map(to : feature_turned[0 : points * features]) \
    map(to : centres[0 : clusters * features]) map(tofrom : membership[0 : points], changed) reduction(+ : changed)
  for (int p = 0; p < points; p++) {
    int nearest = 0;
    float least = INFINITY;
    for (int c = 0; c < clusters; c++) {
      float distance = 0;
      for (int f = 0; f < features; f++) {
        float apart = feature_turned[f * points + p] - centres[c * features + f];
        distance += apart * apart;
      }
      if (distance < least) {
        least = distance;
        nearest = c;
      }
    }
    if (membership[p] != nearest) changed++;
    membership[p] = nearest;
  }
  return changed;
}

static void move_centres(int points, int features, int clusters, const float *feature, const int *membership,
                         float *centres, int *members) {
  for (int c = 0; c < clusters; c++) members[c] = 0;
  for (int p = 0; p < points; p++) members[membership[p]]++;
  for (int c = 0; c < clusters; c++)
    for (int f = 0; f < features && members[c] > 0; f++) centres[c * features + f] = 0;
  for (int p = 0; p < points; p++)
    for (int f = 0; f < features; f++)
      centres[membership[p] * features + f] += feature[p * features + f] / (float)members[membership[p]];
}

int main(int argc, char **argv) {
  int points = argument(argc, argv, 1, "points", 2048);
  int features = argument(argc, argv, 2, "features", 8);
  int clusters = argument(argc, argv, 3, "clusters", 5);
  uint64_t random = random_from(argument(argc, argv, 4, "seed", 1));
  int n = times(points, features);
  if (clusters > points) {
    fprintf(stderr, "%s: clusters is %d; give at most as many as there are points, %d\n", argv[0], clusters, points);
    return 2;
  }

  float *feature = allocate(n, sizeof(float));
  OBJECT(feature, n * sizeof(float));
  float *feature_turned = allocate(n, sizeof(float));
  OBJECT(feature_turned, n * sizeof(float));
  float *centres = allocate((size_t)clusters * features, sizeof(float));
  OBJECT(centres, clusters * features * sizeof(float));
  int *membership = allocate(points, sizeof(int));
  OBJECT(membership, points * sizeof(int));
  int *members = allocate(clusters, sizeof(int));  // the host's alone
  for (int i = 0; i < n; i++) feature[i] = random_unit(&random);
  for (int i = 0; i < clusters * features; i++) centres[i] = feature[i];
  for (int p = 0; p < points; p++) membership[p] = -1;

#pragma omp target data map(to : feature[0 : n], centres[0 : clusters * features]) map(alloc : feature_turned[0 : n]) \
    map(tofrom : membership[0 : points])
  {
    invert_mapping(points, features, feature, feature_turned);
    int changed, round = 0;
    do {
      changed = find_nearest(points, features, clusters, feature_turned, centres, membership);
#pragma omp target update from(membership[0 : points])
      move_centres(points, features, clusters, feature, membership, centres, members);
#pragma omp target update to(centres[0 : clusters * features])
    } while (changed > points / 1000 && ++round < MOST_ROUNDS);
  }

  long sum = 0;
  for (int p = 0; p < points; p++) sum += (long)membership[p] * (p % 97 + 1);
  printf("checksum %ld\n", sum);
  free(feature), free(feature_turned), free(centres), free(membership), free(members);
  return 0;
}
