// One phase of the Louvain method, in the shape of miniVite: every vertex moves to the neighbouring community that gains
// most, many at once, until modularity rises no further. Three arrays of communities (past, current, target) change places
// after each round, as miniVite's do.
//   louvain [vertices 2048] [edges per vertex 4] [seed 1]
#include "example.h"

#define MOST_ROUNDS 64  // moves made at once may swing for ever; miniVite needs such a bound too
#define THRESHOLD 1e-6

struct edge { int to; int weight; };
struct community { long degree; int size; };

static void clean(int n, long *cluster_weight, struct community *update) {
  LAUNCH(cluster_weight, update);
#pragma omp target teams distribute parallel for map(from : cluster_weight[0 : n], update[0 : n])
  for (int v = 0; v < n; v++) {
    cluster_weight[v] = 0;
    update[v].degree = 0;
    update[v].size = 0;
  }
}

static void move_vertices(int n, int edge_count, long total, int round, const int *first, const struct edge *edges,
                          const long *degree, const int *current, int *target, const struct community *communities,
                          struct community *update, long *cluster_weight) {
  LAUNCH(first, edges, degree, current, target, communities, update, cluster_weight);
#pragma omp target teams distribute parallel for map(to : first[0 : n + 1], edges[0 : edge_count], degree[0 : n]) \
    map(to : current[0 : n], communities[0 : n]) map(from : target[0 : n]) map(tofrom : update[0 : n], cluster_weight[0 : n])
  for (int v = 0; v < n; v++) {
    int mine = current[v], best = mine;
    long inside = 0;
    for (int e = first[v]; e < first[v + 1]; e++)
      if (edges[e].to != v && current[edges[e].to] == mine) inside += edges[e].weight;
    cluster_weight[v] = inside;
    double best_gain = 0;
    int last = (v + round) % 2 ? first[v + 1] : first[v];  // every other vertex rests, or neighbours would swap for ever
    for (int e = first[v]; e < last; e++) {
      int other = current[edges[e].to];
      if (other == mine) continue;
      long weight = 0;
      for (int o = first[v]; o < first[v + 1]; o++)
        if (current[edges[o].to] == other) weight += edges[o].weight;
      double pull = (double)degree[v] * (double)(communities[other].degree - communities[mine].degree + degree[v]);
      double gain = (double)(weight - inside) - pull / (double)total;
      if (gain > best_gain || (gain == best_gain && gain > 0 && other < best)) {
        best_gain = gain;
        best = other;
      }
    }
    target[v] = best;
    if (best == mine) continue;
#pragma omp atomic
    update[best].degree += degree[v];
#pragma omp atomic
    update[best].size += 1;
#pragma omp atomic
    update[mine].degree -= degree[v];
#pragma omp atomic
    update[mine].size -= 1;
  }
}

static double modularity(int n, long total, const long *cluster_weight, const struct community *communities) {
  double inside = 0, expected = 0;
  LAUNCH(cluster_weight, communities);
#pragma omp target teams distribute parallel for map(to : cluster_weight[0 : n], communities[0 : n]) \
    map(tofrom : inside, expected) reduction(+ : inside, expected)
  for (int v = 0; v < n; v++) {
    inside += (double)cluster_weight[v];
    expected += (double)communities[v].degree * (double)communities[v].degree;
  }
  return inside / (double)total - expected / ((double)total * (double)total);
}

static void update_communities(int n, struct community *communities, const struct community *update) {
  LAUNCH(communities, update);
#pragma omp target teams distribute parallel for map(tofrom : communities[0 : n]) map(to : update[0 : n])
  for (int v = 0; v < n; v++) {
    communities[v].degree += update[v].degree;
    communities[v].size += update[v].size;
  }
}

// Most edges stay within a block of 32 vertices, so that there are communities to be found; every edge is held both ways.
static void make_ends(int n, int pairs, int *ends, int *first, uint64_t *random) {
  for (int v = 0; v <= n; v++) first[v] = 0;
  for (int p = 0; p < pairs; p++) {
    int from = p % n;
    int within = (from & ~31) + random_below(random, 32);
    int to = within < n && random_below(random, 10) > 0 ? within : random_below(random, n);
    ends[2 * p] = from, ends[2 * p + 1] = to;
    first[from + 1]++, first[to + 1]++;
  }
  for (int v = 0; v < n; v++) first[v + 1] += first[v];
}

static void make_edges(int n, int edge_count, const int *ends, const int *first, int *filled, struct edge *edges,
                       long *degree) {
  for (int v = 0; v < n; v++) filled[v] = 0, degree[v] = 0;
  for (int e = 0; e < edge_count; e++) {
    int from = ends[e], to = ends[e ^ 1];  // the pair's other end
    edges[first[from] + filled[from]++] = (struct edge){to, 1};
    degree[from] += 1;
  }
}

int main(int argc, char **argv) {
  int n = argument(argc, argv, 1, "vertices", 2048);
  int per_vertex = argument(argc, argv, 2, "edges per vertex", 4);
  uint64_t random = random_from(argument(argc, argv, 3, "seed", 1));
  int pairs = times(n, per_vertex), edge_count = times(2, pairs);

  int *ends = allocate(edge_count, sizeof(int));  // the host's alone, and so is filled
  int *filled = allocate(n, sizeof(int));
  int *first = allocate(n + 1, sizeof(int));
  OBJECT(first, (n + 1) * sizeof(int));
  make_ends(n, pairs, ends, first, &random);
  struct edge *edges = allocate(edge_count, sizeof(struct edge));
  OBJECT(edges, edge_count * sizeof(struct edge));
  long *degree = allocate(n, sizeof(long));
  OBJECT(degree, n * sizeof(long));
  int *past = allocate(n, sizeof(int));
  OBJECT(past, n * sizeof(int));
  int *current = allocate(n, sizeof(int));
  OBJECT(current, n * sizeof(int));
  int *target = allocate(n, sizeof(int));
  OBJECT(target, n * sizeof(int));
  struct community *communities = allocate(n, sizeof(struct community));
  OBJECT(communities, n * sizeof(struct community));
  struct community *update = allocate(n, sizeof(struct community));
  OBJECT(update, n * sizeof(struct community));
  long *cluster_weight = allocate(n, sizeof(long));
  OBJECT(cluster_weight, n * sizeof(long));
  make_edges(n, edge_count, ends, first, filled, edges, degree);
  for (int v = 0; v < n; v++) {
    past[v] = current[v] = target[v] = v;
    communities[v] = (struct community){degree[v], 1};
  }

  double before = -1, reached = -1;
  int *was = past, *is = current, *will_be = target;
#pragma omp target data map(to : first[0 : n + 1], edges[0 : edge_count], degree[0 : n], communities[0 : n]) \
    map(tofrom : past[0 : n], current[0 : n], target[0 : n]) map(alloc : update[0 : n], cluster_weight[0 : n])
  for (int round = 0; round < MOST_ROUNDS; round++) {
    clean(n, cluster_weight, update);
    move_vertices(n, edge_count, edge_count, round, first, edges, degree, is, will_be, communities, update, cluster_weight);
    reached = modularity(n, edge_count, cluster_weight, communities);
    if (reached - before < THRESHOLD) break;
    before = reached;
    update_communities(n, communities, update);
    int *spare = was;
    was = is;
    is = will_be;
    will_be = spare;
  }

  long sum = 0;
  for (int v = 0; v < n; v++) sum += (long)was[v] * (v % 97 + 1);
  printf("modularity %.6f\nchecksum %ld\n", before, sum);
  free(ends), free(filled), free(first), free(edges), free(degree), free(past), free(current), free(target);
  free(communities), free(update), free(cluster_weight);
  return 0;
}
