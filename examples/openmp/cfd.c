// The Euler equations on unstructured cells, in the shape of Rodinia's cfd (euler3d): each iteration copies the variables,
// bounds the time step, and makes three Runge-Kutta stages of a flux and a step.
//   cfd [cells along a side 32] [seed 1]      -DITERATIONS=… changes the number of iterations
#include "example.h"

#ifndef ITERATIONS
#define ITERATIONS 20
#endif
#define STAGES 3
#define DIMENSIONS 3
#define NEIGHBOURS 4
#define GAMMA 1.4f
#define MACH 0.5f

enum { DENSITY, MOMENTUM, ENERGY = MOMENTUM + DIMENSIONS, VARIABLES };
enum { WING = -1, FAR_FIELD = -2 };

struct state { float density, momentum[DIMENSIONS], energy, velocity[DIMENSIONS], pressure, sound; };

#pragma omp declare target
static struct state state_of(const float *variables, int i, int n) {
  struct state s;
  s.density = variables[i + DENSITY * n];
  float speed2 = 0;
  for (int d = 0; d < DIMENSIONS; d++) {
    s.momentum[d] = variables[i + (MOMENTUM + d) * n];
    s.velocity[d] = s.momentum[d] / s.density;
    speed2 += s.velocity[d] * s.velocity[d];
  }
  s.energy = variables[i + ENERGY * n];
  s.pressure = (GAMMA - 1) * (s.energy - 0.5f * s.density * speed2);
  s.sound = sqrtf(GAMMA * s.pressure / s.density);
  return s;
}

// Adds to the flux of a cell what state s carries through a face with this normal, halved as central differences are.
static void carry(const struct state *s, const float *normal, float *flux) {
  float through = 0;
  for (int d = 0; d < DIMENSIONS; d++) through += normal[d] * s->velocity[d];
  flux[DENSITY] -= 0.5f * through * s->density;
  for (int d = 0; d < DIMENSIONS; d++)
    flux[MOMENTUM + d] -= 0.5f * (through * s->momentum[d] + normal[d] * s->pressure);
  flux[ENERGY] -= 0.5f * through * (s->energy + s->pressure);
}
#pragma omp end declare target

static void initialize_variables(int n, float *variables, const float *far_field) {
  LAUNCH(variables, far_field);
#pragma omp target teams distribute parallel for map(from : variables[0 : VARIABLES * n]) map(to : far_field[0 : VARIABLES])
  for (int i = 0; i < n; i++)
    for (int v = 0; v < VARIABLES; v++) variables[i + v * n] = far_field[v];
}

static void copy(int n, float *old_variables, const float *variables) {
  LAUNCH(old_variables, variables);
#pragma omp target teams distribute parallel for map(from : old_variables[0 : VARIABLES * n]) \
    map(to : variables[0 : VARIABLES * n])
  for (int i = 0; i < VARIABLES * n; i++) old_variables[i] = variables[i];
}

static void compute_step_factor(int n, const float *variables, const float *areas, float *step_factors) {
  LAUNCH(variables, areas, step_factors);
#pragma omp target teams distribute parallel for map(to : variables[0 : VARIABLES * n], areas[0 : n]) \
    map(from : step_factors[0 : n])
  for (int i = 0; i < n; i++) {
    struct state s = state_of(variables, i, n);
    float speed2 = 0;
    for (int d = 0; d < DIMENSIONS; d++) speed2 += s.velocity[d] * s.velocity[d];
    step_factors[i] = 0.5f / (sqrtf(areas[i]) * (sqrtf(speed2) + s.sound));
  }
}

static void compute_flux(int n, const int *neighbours, const float *normals, const float *variables, float *fluxes,
                         const float *far_field) {
  LAUNCH(neighbours, normals, variables, fluxes, far_field);
#pragma omp target teams distribute parallel for map(to : neighbours[0 : NEIGHBOURS * n]) \
    map(to : normals[0 : NEIGHBOURS * DIMENSIONS * n], variables[0 : VARIABLES * n], far_field[0 : VARIABLES]) \
    map(from : fluxes[0 : VARIABLES * n])
  for (int i = 0; i < n; i++) {
    struct state here = state_of(variables, i, n);
    float flux[VARIABLES] = {0};
    for (int k = 0; k < NEIGHBOURS; k++) {
      int beside = neighbours[i + k * n];
      float normal[DIMENSIONS], area2 = 0;
      for (int d = 0; d < DIMENSIONS; d++) {
        normal[d] = normals[i + (k * DIMENSIONS + d) * n];
        area2 += normal[d] * normal[d];
      }
      if (beside == WING) {  // no flow through a wall, only pressure on it
        for (int d = 0; d < DIMENSIONS; d++) flux[MOMENTUM + d] -= normal[d] * here.pressure;
        continue;
      }
      struct state there = beside == FAR_FIELD ? state_of(far_field, 0, 1) : state_of(variables, beside, n);
      carry(&here, normal, flux);
      carry(&there, normal, flux);
      float damping = 0.5f * sqrtf(area2) * (here.sound + there.sound);  // artificial viscosity keeps it stable
      flux[DENSITY] += damping * (there.density - here.density);
      for (int d = 0; d < DIMENSIONS; d++) flux[MOMENTUM + d] += damping * (there.momentum[d] - here.momentum[d]);
      flux[ENERGY] += damping * (there.energy - here.energy);
    }
    for (int v = 0; v < VARIABLES; v++) fluxes[i + v * n] = flux[v];
  }
}

static void time_step(int n, int stage, const float *old_variables, float *variables, const float *step_factors,
                      const float *fluxes) {
  LAUNCH(old_variables, variables, step_factors, fluxes);
#pragma omp target teams distribute parallel for map(to : old_variables[0 : VARIABLES * n], step_factors[0 : n]) \
    map(to : fluxes[0 : VARIABLES * n]) map(from : variables[0 : VARIABLES * n])
  for (int i = 0; i < n; i++) {
    float factor = step_factors[i] / (float)(STAGES + 1 - stage);
    for (int v = 0; v < VARIABLES; v++) variables[i + v * n] = old_variables[i + v * n] + factor * fluxes[i + v * n];
  }
}

// A square of side × side cells told as an unstructured mesh: a wall below, the far field on the other sides.
static void make_mesh(int side, float *areas, int *neighbours, float *normals, uint64_t *random) {
  static const int dx[NEIGHBOURS] = {1, -1, 0, 0}, dy[NEIGHBOURS] = {0, 0, 1, -1};
  int n = side * side;
  for (int i = 0; i < n; i++) {
    areas[i] = 1.0f + 0.5f * random_unit(random);
    for (int k = 0; k < NEIGHBOURS; k++) {
      int x = i % side + dx[k], y = i / side + dy[k];
      int outside = x < 0 || x >= side || y >= side;
      neighbours[i + k * n] = y < 0 ? WING : outside ? FAR_FIELD : y * side + x;
      normals[i + (k * DIMENSIONS + 0) * n] = (float)dx[k];
      normals[i + (k * DIMENSIONS + 1) * n] = (float)dy[k];
      normals[i + (k * DIMENSIONS + 2) * n] = 0;
    }
  }
}

static void make_far_field(float *far_field) {
  const float angle = 0.05f;  // radians: a little downwards, so that the wall disturbs the flow
  float speed = MACH;         // density 1, pressure 1/gamma: the speed of sound is 1
  far_field[DENSITY] = 1;
  far_field[MOMENTUM] = speed * cosf(angle);
  far_field[MOMENTUM + 1] = -speed * sinf(angle);
  far_field[MOMENTUM + 2] = 0;
  far_field[ENERGY] = 0.5f * speed * speed + 1 / (GAMMA * (GAMMA - 1));
}

int main(int argc, char **argv) {
  int side = argument(argc, argv, 1, "cells along a side", 32);
  uint64_t random = random_from(argument(argc, argv, 2, "seed", 1));
  int n = times(side, side);
  times(n, NEIGHBOURS * DIMENSIONS);  // the largest array

  float *areas = allocate(n, sizeof(float));
  OBJECT(areas, n * sizeof(float));
  int *neighbours = allocate((size_t)NEIGHBOURS * n, sizeof(int));
  OBJECT(neighbours, NEIGHBOURS * n * sizeof(int));
  float *normals = allocate((size_t)NEIGHBOURS * DIMENSIONS * n, sizeof(float));
  OBJECT(normals, NEIGHBOURS * DIMENSIONS * n * sizeof(float));
  float *variables = allocate((size_t)VARIABLES * n, sizeof(float));
  OBJECT(variables, VARIABLES * n * sizeof(float));
  float *old_variables = allocate((size_t)VARIABLES * n, sizeof(float));
  OBJECT(old_variables, VARIABLES * n * sizeof(float));
  float *fluxes = allocate((size_t)VARIABLES * n, sizeof(float));
  OBJECT(fluxes, VARIABLES * n * sizeof(float));
  float *step_factors = allocate(n, sizeof(float));
  OBJECT(step_factors, n * sizeof(float));
  float *far_field = allocate(VARIABLES, sizeof(float));
  OBJECT(far_field, VARIABLES * sizeof(float));
  make_mesh(side, areas, neighbours, normals, &random);
  make_far_field(far_field);

#pragma omp target data map(to : areas[0 : n], neighbours[0 : NEIGHBOURS * n], far_field[0 : VARIABLES]) \
    map(to : normals[0 : NEIGHBOURS * DIMENSIONS * n]) map(from : variables[0 : VARIABLES * n]) \
    map(alloc : old_variables[0 : VARIABLES * n], fluxes[0 : VARIABLES * n], step_factors[0 : n])
  {
    initialize_variables(n, variables, far_field);
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
      copy(n, old_variables, variables);
      compute_step_factor(n, variables, areas, step_factors);
      for (int stage = 1; stage <= STAGES; stage++) {
        compute_flux(n, neighbours, normals, variables, fluxes, far_field);
        time_step(n, stage, old_variables, variables, step_factors, fluxes);
      }
    }
  }

  double sum = 0;
  for (int i = 0; i < VARIABLES * n; i++) sum += variables[i];
  printf("checksum %.6g\n", sum);
  free(areas), free(neighbours), free(normals), free(variables);
  free(old_variables), free(fluxes), free(step_factors), free(far_field);
  return 0;
}
