// Breadth-first search by levels, in the shape of Rodinia's bfs: one region visits the frontier's neighbours, a second
// makes the next frontier of them, until nothing was added.
//   bfs [vertices 4096] [mean degree 6] [seed 1]
#include "example.h"

struct node { int first, degree; };

static void visit(int n, const struct node *nodes, const int *edges, char *frontier, char *next, const char *visited,
                  int *cost, int edge_count) {
  LAUNCH(nodes, edges, frontier, next, visited, cost);
#pragma omp target teams distribute parallel for map(to : nodes[0 : n], edges[0 : edge_count], visited[0 : n]) \
    map(tofrom : frontier[0 : n], next[0 : n], cost[0 : n])
  for (int v = 0; v < n; v++) {
    if (!frontier[v]) continue;
    frontier[v] = 0;
    for (int e = nodes[v].first; e < nodes[v].first + nodes[v].degree; e++) {
      int to = edges[e];
      if (!visited[to]) {
        cost[to] = cost[v] + 1;  // several threads may write it; all write the same level
        next[to] = 1;
      }
    }
  }
}

static int advance(int n, char *frontier, char *next, char *visited) {
  int more = 0;
  LAUNCH(next, frontier, visited);
#pragma omp target teams distribute parallel for map(tofrom : frontier[0 : n], next[0 : n], visited[0 : n]) \
    map(tofrom : more)
  for (int v = 0; v < n; v++) {
    if (!next[v]) continue;
    frontier[v] = 1;
    visited[v] = 1;
    next[v] = 0;
    more = 1;
  }
  return more;
}

static int make_nodes(struct node *nodes, int n, int degree, uint64_t *random) {
  int edge_count = 0;
  for (int v = 0; v < n; v++) {
    nodes[v].first = edge_count;
    nodes[v].degree = 1 + random_below(random, 2 * degree - 1);
    edge_count += nodes[v].degree;
  }
  return edge_count;
}

int main(int argc, char **argv) {
  int n = argument(argc, argv, 1, "vertices", 4096);
  int degree = argument(argc, argv, 2, "mean degree", 6);
  uint64_t random = random_from(argument(argc, argv, 3, "seed", 1));
  times(n, times(2, degree));  // the most edges there can be

  struct node *nodes = allocate(n, sizeof(struct node));
  OBJECT(nodes, n * sizeof(struct node));
  int edge_count = make_nodes(nodes, n, degree, &random);
  int *edges = allocate(edge_count, sizeof(int));
  OBJECT(edges, edge_count * sizeof(int));
  for (int e = 0; e < edge_count; e++) edges[e] = random_below(&random, n);
  char *frontier = allocate(n, 1);
  OBJECT(frontier, n);
  char *next = allocate(n, 1);
  OBJECT(next, n);
  char *visited = allocate(n, 1);
  OBJECT(visited, n);
  int *cost = allocate(n, sizeof(int));
  OBJECT(cost, n * sizeof(int));
  for (int v = 0; v < n; v++) {
    frontier[v] = next[v] = visited[v] = 0;
    cost[v] = -1;
  }
  frontier[0] = visited[0] = 1;
  cost[0] = 0;

#pragma omp target data map(to : nodes[0 : n], edges[0 : edge_count], frontier[0 : n], next[0 : n], visited[0 : n]) \
    map(tofrom : cost[0 : n])
  {
    int more;
    do {
      visit(n, nodes, edges, frontier, next, visited, cost, edge_count);
      more = advance(n, frontier, next, visited);
    } while (more);
  }

  long sum = 0;
  for (int v = 0; v < n; v++) sum += cost[v];
  printf("checksum %ld\n", sum);
  free(nodes), free(edges), free(frontier), free(next), free(visited), free(cost);
  return 0;
}
