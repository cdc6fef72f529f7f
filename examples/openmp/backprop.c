// One training step of a three-layer network, in the shape of Rodinia's backprop: two regions, forward and adjust, each
// launched once for either layer of weights. The errors, small, are worked out on the host between them.
//   backprop [input units 4096] [hidden units 16] [output units 1] [seed 1]
#include "example.h"

#define ETA 0.3f
#define MOMENTUM 0.3f

// Weights of unit j's input k stand at k * (to + 1) + j; unit 0 of a layer is its threshold, always 1.
static void layer_forward(int from, int to, float *source, float *result, const float *weights) {
  source[0] = 1;
#pragma omp target update to(source[0 : 1])
  LAUNCH(source, result, weights);
#pragma omp target teams distribute parallel for map(to : source[0 : from + 1]) \
    map(to : weights[0 : (from + 1) * (to + 1)]) map(tofrom : result[0 : to + 1])
  for (int j = 1; j <= to; j++) {
    float sum = 0;
    for (int k = 0; k <= from; k++) sum += weights[k * (to + 1) + j] * source[k];
    result[j] = 1 / (1 + expf(-sum));
  }
#pragma omp target update from(result[0 : to + 1])
}

static void adjust_weights(int from, int to, const float *delta, const float *source, float *weights, float *previous) {
#pragma omp target update to(delta[0 : to + 1])
  LAUNCH(delta, source, weights, previous);
#pragma omp target teams distribute parallel for collapse(2) map(to : delta[0 : to + 1], source[0 : from + 1]) \
    map(tofrom : weights[0 : (from + 1) * (to + 1)], previous[0 : (from + 1) * (to + 1)])
  for (int k = 0; k <= from; k++)
    for (int j = 1; j <= to; j++) {
      float change = ETA * delta[j] * source[k] + MOMENTUM * previous[k * (to + 1) + j];
      weights[k * (to + 1) + j] += change;
      previous[k * (to + 1) + j] = change;
    }
}

static void output_error(int out, const float *target, const float *units, float *delta) {
  for (int j = 1; j <= out; j++) delta[j] = units[j] * (1 - units[j]) * (target[j] - units[j]);
}

static void hidden_error(int hidden, int out, const float *out_delta, const float *weights, const float *units, float *delta) {
  for (int j = 1; j <= hidden; j++) {
    float sum = 0;
    for (int k = 1; k <= out; k++) sum += out_delta[k] * weights[j * (out + 1) + k];
    delta[j] = units[j] * (1 - units[j]) * sum;
  }
}

static void fill(float *values, size_t count, uint64_t *random) {
  for (size_t i = 0; i < count; i++) values[i] = random == NULL ? 0 : random_unit(random) - 0.5f;
}

int main(int argc, char **argv) {
  int in = argument(argc, argv, 1, "input units", 4096);
  int hidden = argument(argc, argv, 2, "hidden units", 16);
  int out = argument(argc, argv, 3, "output units", 1);
  uint64_t random = random_from(argument(argc, argv, 4, "seed", 1));
  int first = times(in + 1, hidden + 1), second = times(hidden + 1, out + 1);

  float *input_units = allocate(in + 1, sizeof(float));
  OBJECT(input_units, (in + 1) * sizeof(float));
  float *hidden_units = allocate(hidden + 1, sizeof(float));
  OBJECT(hidden_units, (hidden + 1) * sizeof(float));
  float *output_units = allocate(out + 1, sizeof(float));
  OBJECT(output_units, (out + 1) * sizeof(float));
  float *hidden_delta = allocate(hidden + 1, sizeof(float));
  OBJECT(hidden_delta, (hidden + 1) * sizeof(float));
  float *output_delta = allocate(out + 1, sizeof(float));
  OBJECT(output_delta, (out + 1) * sizeof(float));
  float *input_weights = allocate(first, sizeof(float));
  OBJECT(input_weights, first * sizeof(float));
  float *hidden_weights = allocate(second, sizeof(float));
  OBJECT(hidden_weights, second * sizeof(float));
  float *input_previous = allocate(first, sizeof(float));
  OBJECT(input_previous, first * sizeof(float));
  float *hidden_previous = allocate(second, sizeof(float));
  OBJECT(hidden_previous, second * sizeof(float));
  float *target = allocate(out + 1, sizeof(float));  // the host's alone

  fill(input_units, in + 1, &random), fill(input_weights, first, &random), fill(hidden_weights, second, &random);
  fill(hidden_units, hidden + 1, NULL), fill(output_units, out + 1, NULL);
  fill(hidden_delta, hidden + 1, NULL), fill(output_delta, out + 1, NULL);
  fill(input_previous, first, NULL), fill(hidden_previous, second, NULL);
  for (int j = 0; j <= out; j++) target[j] = 0.1f;

#pragma omp target data map(to : input_units[0 : in + 1], hidden_units[0 : hidden + 1], output_units[0 : out + 1]) \
    map(to : hidden_delta[0 : hidden + 1], output_delta[0 : out + 1]) \
    map(tofrom : input_weights[0 : first], hidden_weights[0 : second]) \
    map(tofrom : input_previous[0 : first], hidden_previous[0 : second])
  {
    layer_forward(in, hidden, input_units, hidden_units, input_weights);
    layer_forward(hidden, out, hidden_units, output_units, hidden_weights);
    output_error(out, target, output_units, output_delta);
    hidden_error(hidden, out, output_delta, hidden_weights, hidden_units, hidden_delta);
    adjust_weights(hidden, out, output_delta, hidden_units, hidden_weights, hidden_previous);
    adjust_weights(in, hidden, hidden_delta, input_units, input_weights, input_previous);
  }

  double sum = 0;
  for (int i = 0; i < first; i++) sum += input_weights[i];
  for (int i = 0; i < second; i++) sum += hidden_weights[i];
  printf("checksum %.6g\n", sum);
  free(input_units), free(hidden_units), free(output_units), free(hidden_delta), free(output_delta);
  free(input_weights), free(hidden_weights), free(input_previous), free(hidden_previous), free(target);
  return 0;
}
