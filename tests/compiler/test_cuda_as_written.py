"""CUDA as people write it: each test is a small program with one thing that was misread once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from offloaded import cuda
from tidegate.compiler import ProgramModel
from tidegate.compiler.model_file import load, save
from tidegate.compiler.project import model_of_files
from tidegate.experiments.planning import settle
from tidegate.workloads.modelled import Modelled

pytestmark = pytest.mark.extra  # headers of CUDA

HEAD = """
#include <cstdio>
#include <cstdlib>
__global__ void inc(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += 1;
}
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], ProgramModel]:
    """The model of a program given as text."""
    cuda()

    def model(text: str) -> ProgramModel:
        source = tmp_path / "program.cu"
        source.write_text(HEAD + text)
        return model_of_files([source])

    return model


def sizes(model: ProgramModel) -> dict[str, str]:
    return {o.name: str(o.bytes) for o in model.objects}


# The end of main


@pytest.mark.parametrize(
    "end", ["exit(0);", "exit(h[0] == 1 ? EXIT_SUCCESS : EXIT_FAILURE);", "abort();", "return 0;"]
)
def test_main_may_end_without_a_return(written: Callable[[str], ProgramModel], end: str) -> None:
    """LLVM takes what leads to a call that does not return as never done: 10⁹ turns."""
    model = written(
        f"""
int main(int argc, char **argv) {{
  if (argc != 2) {{ printf("usage\\n"); exit(1); }}
  int n = atoi(argv[1]);
  float *h = (float *)malloc(4 * n), *a, err = 1;
  cudaMalloc(&a, 4 * n);
  while (err > 0.1f) {{
    inc<<<(n + 255) / 256, 256>>>(a, n);
    cudaMemcpy(&err, a, 4, cudaMemcpyDeviceToHost);
  }}
  cudaMemcpy(h, a, 4 * n, cudaMemcpyDeviceToHost);
  {end}
}}"""
    )
    assert model.launches[0].frequency == pytest.approx(32, rel=0.01)


def test_a_wrong_option_ends_no_run(written: Callable[[str], ProgramModel]) -> None:
    """The loop over the options can be left by an exit, but no run of interest does."""
    model = written(
        """
int main(int argc, char **argv) {
  int n = 1, k = 1;
  while (k < argc)
    switch (argv[k++][1]) {
      case 'n': n = atoi(argv[k++]); break;
      default: printf("usage\\n"); exit(0);
    }
  float *a;
  cudaMalloc(&a, 4 * n);
  inc<<<(n + 255) / 256, 256>>>(a, n);
  exit(0);
}"""
    )
    assert model.launches[0].frequency == pytest.approx(1, rel=0.01)
    assert sizes(model) == {"a": "4*n"}


def test_a_loop_without_an_end_is_noted(written: Callable[[str], ProgramModel]) -> None:
    model = written(
        """
int main() {
  float *a;
  cudaMalloc(&a, 4096);
  for (;;) inc<<<4, 256>>>(a, 1024);
}"""
    )
    assert model.launches[0].frequency == pytest.approx(32, rel=0.01)
    assert any("no end of a loop" in str(note) for note in model.notes)
    assert len(Modelled(model, {}).order) <= 40


# Names of sizes


def test_sizes_in_memory_have_the_names_of_their_variables(
    written: Callable[[str], ProgramModel],
) -> None:
    model = written(
        """
#include <unistd.h>
struct Options { int turns, width; };
int rows = 512, fixed_size = 4096;
static void parse(int argc, char **argv, Options *o) {
  int c;
  while ((c = getopt(argc, argv, "w:r:")) != -1)
    switch (c) {
      case 'w': o->width = atoi(optarg); break;
      case 'r': rows = atoi(optarg); break;
    }
}
int main(int argc, char **argv) {
  Options o = {10, 64};
  int depth = 3;
  parse(argc, argv, &o);
  sscanf(argv[2], "%d", &depth);
  Options *on_heap = (Options *)malloc(sizeof(Options));
  fread(on_heap, 1, 8, stdin);
  float *a, *b, *c, *d, *e;
  cudaMalloc(&a, rows * sizeof(float));
  cudaMalloc(&b, o.width * sizeof(float));
  cudaMalloc(&c, depth * sizeof(float));
  cudaMalloc(&d, fixed_size * sizeof(float));
  cudaMalloc(&e, on_heap->width * sizeof(float));
  for (int t = 0; t < on_heap->turns; t++) {
    inc<<<(o.width + 255) / 256, 256>>>(b, o.width);
    inc<<<(rows + 255) / 256, 256>>>(a, rows);
    inc<<<depth, 256>>>(c, depth);
    inc<<<16, 256>>>(d, 4096);
    inc<<<16, 256>>>(e, 4096);
  }
  return 0;
}"""
    )
    assert sizes(model) == {
        "a": "4*rows",
        "b": "4*o.width",
        "c": "4*depth",
        "d": "16384",  # nothing writes fixed_size
        "e": "4*on_heap->width",
    }
    trips = [str(x.trip_count) for x in model.launches]
    assert trips[:3] == ["o.width", "rows", "256*depth"]
    assert model.flow.variables() == {"on_heap->turns"}
    values, _ = settle(model, {"rows": 7, "o.width": 8, "depth": 9, "on_heap->width": 10}, 2**30)
    assert values["rows"] == 7


def test_a_size_without_a_variable_is_named_by_its_call(
    written: Callable[[str], ProgramModel],
) -> None:
    model = written(
        """
int main(int argc, char **argv) {
  float *a;
  cudaMalloc(&a, 4 * atoi(argv[1]));
  inc<<<4, 256>>>(a, 1024);
}"""
    )
    assert sizes(model) == {"a": "4*atoi:11"}


# Objects


OBJECTS = """
__device__ float table[4096];
__constant__ float coefficients[64];
__device__ float *hidden;
__global__ void pitched(float *a, size_t pitch, int w, int h) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < w && y < h) ((float *)((char *)a + y * pitch))[x] = table[x] * coefficients[y];
}
__global__ void volume(cudaPitchedPtr p, int n) { ((float *)p.ptr)[threadIdx.x] = n; }
__global__ void textured(float *out, cudaTextureObject_t t, cudaTextureObject_t u, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex1Dfetch<float>(t, i) + tex2D<float>(u, i, 0);
}
__global__ void mapped(float *d, int n) {
  int i = threadIdx.x;
  if (i < n) d[i] = hidden[i];
}
int main(int argc, char **argv) {
  int w = atoi(argv[1]), h = atoi(argv[2]);
  float *a, *linear, *out, *host, *of_host, *secret;
  size_t pitch;
  cudaMallocPitch(&a, &pitch, w * sizeof(float), h);
  cudaPitchedPtr vol;
  cudaMalloc3D(&vol, make_cudaExtent(w * sizeof(float), h, 16));
  cudaMalloc(&linear, w * sizeof(float));
  cudaMalloc(&out, w * sizeof(float));
  cudaMalloc(&secret, w * sizeof(float));
  cudaMemcpyToSymbol(hidden, &secret, sizeof(secret));
  cudaHostAlloc(&host, w * sizeof(float), cudaHostAllocMapped);
  cudaHostGetDevicePointer(&of_host, host, 0);
  cudaChannelFormatDesc channel = cudaCreateChannelDesc<float2>();
  cudaArray_t array;
  cudaMallocArray(&array, &channel, w, h);
  cudaResourceDesc of_linear = {}, of_array;
  of_linear.resType = cudaResourceTypeLinear;
  of_linear.res.linear.devPtr = linear;
  memset(&of_array, 0, sizeof(of_array));
  of_array.resType = cudaResourceTypeArray;
  of_array.res.array.array = array;
  cudaTextureDesc desc = {};
  cudaTextureObject_t t, u;
  cudaCreateTextureObject(&t, &of_linear, &desc, NULL);
  cudaCreateTextureObject(&u, &of_array, &desc, NULL);
  pitched<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(a, pitch, w, h);
  volume<<<1, 256>>>(vol, 3);
  textured<<<(w + 255) / 256, 256>>>(out, t, u, w);
  mapped<<<1, 256>>>(of_host, w);
  return 0;
}
"""


def test_objects_that_are_no_plain_parameters(written: Callable[[str], ProgramModel]) -> None:
    """Rows with padding, arrays behind textures, mapped memory, globals and pointers in globals."""
    model = written(OBJECTS)
    assert [(x.region, x.objects) for x in model.launches] == [
        ("pitched", ("a", "table")),
        ("volume", ("vol",)),
        ("textured", ("out", "linear", "array")),
        ("mapped", ("host", "secret")),
    ]
    assert sizes(model) == {
        "a": "4*h*w",
        "vol": "64*h*w",
        "linear": "4*w",
        "out": "4*w",
        "secret": "4*w",
        "host": "4*w",
        "array": "8*h*w",
        "table": "16384",
    }
    assert all(use.locality == pytest.approx(1, rel=0.01) for x in model.launches for use in x.uses)
    written_to = {u.object for x in model.launches for u in x.uses if u.writes}
    assert written_to == {"a", "vol", "out", "host"}
    assert "reads coefficients from constant memory" in " ".join(map(str, model.notes))


def test_a_model_with_globals_can_be_saved(
    written: Callable[[str], ProgramModel], tmp_path: Path
) -> None:
    model = written(OBJECTS)
    save(model, tmp_path / "model.json")
    assert load(tmp_path / "model.json") == model
