"""CUDA as people write it: each test is a small program with one thing that was misread once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from offloaded import cuda
from tidegate.compiler import ProgramModel
from tidegate.compiler.model_file import load, save
from tidegate.compiler.project import model_of_files
from tidegate.errors import TidegateError
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


# Launches


def test_launches_that_are_not_written_as_such(written: Callable[[str], ProgramModel]) -> None:
    """By a pointer, by the function of the runtime, in a thread, and in a library."""
    model = written(
        """
#include <pthread.h>
__global__ void dec(float *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] -= 1;
}
struct Job { float *data; int n; };
static void *work(void *given) {
  Job *job = (Job *)given;
  inc<<<1, 64>>>(job->data, job->n);
  return NULL;
}
extern "C" int cublasSgemm_v2(void *, int, int, int, int, int, const float *, const float *, int,
                              const float *, int, const float *, float *, int);
int main(int argc, char **argv) {
  int n = atoi(argv[1]);
  float *a, *b, *c, *d, one = 1;
  cudaMalloc(&a, 4 * n);
  cudaMalloc(&b, 4 * n);
  cudaMalloc(&c, 4 * n);
  cudaMalloc(&d, 4 * n);
  void (*kernel)(float *, int) = atoi(argv[2]) ? inc : dec;
  kernel<<<(n + 255) / 256, 256>>>(a, n);
  void *arguments[] = {&b, &n};
  cudaLaunchCooperativeKernel((void *)inc, dim3(8), dim3(128), arguments);
  Job job = {c, n};
  pthread_t thread;
  pthread_create(&thread, NULL, work, &job);
  cublasSgemm_v2(0, 0, 0, n, n, n, &one, a, n, b, n, &one, d, n);
  return 0;
}"""
    )
    assert [(x.region, str(x.trip_count), x.objects) for x in model.launches] == [
        ("dec", "n", ("a",)),
        ("inc", "n", ("a",)),
        ("inc", "1024", ("b",)),
        ("inc", "64", ("c",)),
        ("cublasSgemm", "None", ("a", "b", "d")),
    ]
    assert [n for n in "abd" if model.is_written(model.launches[-1], n)] == ["d"]
    notes = " ".join(map(str, model.notes))
    assert "dec: is one of 2 kernels that a pointer may be" in notes
    assert "work: runs in a thread of its own" in notes


def test_a_function_declared_without_parameters_is_followed(tmp_path: Path) -> None:
    """C of old: the caller does not know the parameters of what it calls."""
    cuda()
    (tmp_path / "main.c").write_text(
        "int main(int argc, char **argv) { int n = argc * 64; run(n, argv); return 0; }"
    )
    (tmp_path / "run.cu").write_text(
        HEAD
        + """
extern "C" void run(int n, char **argv) {
  float *a;
  cudaMalloc(&a, 4 * n);
  inc<<<(n + 255) / 256, 256>>>(a, n);
}"""
    )
    model = model_of_files([tmp_path / "main.c", tmp_path / "run.cu"])
    assert [x.region for x in model.launches] == ["inc"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cudaGraphExec_t g; cudaGraphLaunch(g, 0);", "cudaGraphLaunch: runs a graph"),
        ("float *a; cudaMalloc(&a, 64);", "has no kernel launch that main reaches by calls"),
    ],
)
def test_what_is_said_where_no_launch_is_found(
    written: Callable[[str], ProgramModel], text: str, said: str
) -> None:
    with pytest.raises(TidegateError, match=said):
        written(f"int main() {{ {text} }}")


# What nvcc lets pass


def test_what_nvcc_declares_is_known(written: Callable[[str], ProgramModel]) -> None:
    """min and max on the host, surfaces, managed variables, and headers that it includes."""
    model = written(
        """
__managed__ float grid[1024];
__global__ void draw(cudaSurfaceObject_t s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) surf2Dwrite(grid[i], s, i * 4, 0);
}
int main(int argc, char **argv) {
  int n = max(min(atoi(argv[1]), 1024), 64);
  long seconds = time(NULL);
  cudaChannelFormatDesc channel = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &channel, n, 0, cudaArraySurfaceLoadStore);
  cudaResourceDesc res = {};
  res.res.array.array = array;
  cudaSurfaceObject_t surface;
  cudaCreateSurfaceObject(&surface, &res);
  draw<<<4, 256>>>(surface, n);
  cudaDeviceSynchronize();
  printf("%f %d\\n", grid[0], (int)(seconds > max(n, 3u)));
}"""
    )
    (launch,) = model.launches
    assert launch.objects == ("array", "grid")
    assert sizes(model) == {"array": "4*n", "grid": "4096"}
    assert [u.object for u in launch.uses if u.writes] == ["array"]


# Footprints and iterations


def test_buffers_of_which_one_lives_at_a_time_are_one_object(
    written: Callable[[str], ProgramModel],
) -> None:
    """A function that is called twice, and alternatives; but not two that live together."""
    model = written(
        """
static void step(int n) {
  float *buffer;
  cudaMalloc(&buffer, 4 * n);
  inc<<<(n + 255) / 256, 256>>>(buffer, n);
  cudaFree(buffer);
}
static float *kept(int n) {
  float *both;
  cudaMalloc(&both, 4 * n);
  inc<<<(n + 255) / 256, 256>>>(both, n);
  return both;
}
int main(int argc, char **argv) {
  int n = atoi(argv[1]);
  step(n);
  step(n);
  float *data;
  if (argc > 2) {
    cudaMalloc(&data, 4 * n);
    inc<<<(n + 255) / 256, 256>>>(data, n);
  } else {
    cudaMallocManaged(&data, 4 * n);
    inc<<<1, 256>>>(data, n);
  }
  float *x = kept(n), *y = kept(n);
  cudaFree(x);
  cudaFree(y);
}"""
    )
    assert list(sizes(model).values()) == ["4*n"] * 4
    assert [x.objects for x in model.launches[:4]] == [("buffer",)] * 2 + [("data",)] * 2
    assert model.launches[4].objects != model.launches[5].objects


def test_buffers_made_in_a_loop_count_as_often(written: Callable[[str], ProgramModel]) -> None:
    model = written(
        """
int main(int argc, char **argv) {
  int n = atoi(argv[1]), parts = atoi(argv[2]);
  float *fixed[4], **any = (float **)malloc(parts * sizeof(float *));
  for (int i = 0; i < 4; i++) cudaMalloc(&fixed[i], 4 * n);
  for (int i = 0; i < parts; i++) cudaMalloc(&any[i], 4 * n);
  for (int i = 0; i < 4; i++) inc<<<(n + 255) / 256, 256>>>(fixed[i], n);
  for (int i = 0; i < parts; i++) inc<<<(n + 255) / 256, 256>>>(any[i], n);
}"""
    )
    assert sorted(sizes(model).values()) == ["16*n", "4*n*parts"]


def test_threads_that_share_a_loop_divide_it(written: Callable[[str], ProgramModel]) -> None:
    """With a stride of the whole grid each element is touched once, however many threads."""
    model = written(
        """
__global__ void strided(float *a, int n) {
  int stride = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) a[i] += 1;
}
__global__ void rows(float *b, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int j = 0; j < k; j++) b[i * k + j] = 1;
}
int main(int argc, char **argv) {
  int n = atoi(argv[1]);
  float *a, *b;
  cudaMalloc(&a, 4 * n);
  cudaMalloc(&b, 4096 * n);
  strided<<<64, 256>>>(a, n);
  rows<<<n / 256, 256>>>(b, 1024);
}"""
    )
    strided, rows = model.launches
    assert (str(strided.trip_count), str(rows.trip_count)) == ("n", "n")
    assert model.access_density(strided, strided.uses[0], {"n": 2**20}) == pytest.approx(2)
    assert rows.uses[0].bytes_per_iteration == pytest.approx(4096, rel=0.01)  # not 32 turns
    assert rows.uses[0].locality == pytest.approx(1024, rel=0.01)


# Projects


def test_a_makefile_with_another_toolkit_and_a_pattern(tmp_path: Path) -> None:
    """Its headers would come before those that clang is told, and a shell expands `*.cu`."""
    cuda()
    other = tmp_path / "toolkit"
    other.mkdir()
    for header in ("cuda_runtime.h", "cuda_runtime_api.h"):
        (other / header).write_text("#error another version\n")
    (tmp_path / "main.cu").write_text(
        HEAD + "int main() { float *a; cudaMalloc(&a, 64); inc<<<1, 16>>>(a, 16); }"
    )
    (tmp_path / "Makefile").write_text("all:\n\tnvcc *.cu -o all -I toolkit -Itoolkit\n")
    assert [x.region for x in model_of_files([tmp_path]).launches] == ["inc"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#include <cublas_v3.h>", "pip install nvidia-cublas-cu12"),
        ("#include <of_nobody.h>", "give the folder that has of_nobody.h with -I"),
        ("texture<float, 1> t;", "CUDA 12 has no texture references"),
        ("__global__ void k() { inc<<<1, 1>>>(0, 0); }", "dynamic parallelism"),
    ],
)
def test_a_refusal_says_what_to_do(
    written: Callable[[str], ProgramModel], text: str, said: str
) -> None:
    with pytest.raises(TidegateError, match=said):
        written(f"{text}\nint main() {{}}")


def test_several_programs_are_refused(tmp_path: Path) -> None:
    cuda()
    for name in "ab":
        (tmp_path / f"{name}.cu").write_text("int main() {}")
    with pytest.raises(TidegateError, match="it is several programs; give the Makefile and"):
        model_of_files([tmp_path / "a.cu", tmp_path / "b.cu"])


@pytest.mark.parametrize(
    "blocks",
    ["n / 256 + (n % 256 == 0 ? 0 : 1)", "(int)ceil(n / 256.0)", "(int)ceil((float)n / 96.f)"],
)
def test_ways_to_round_up(written: Callable[[str], ProgramModel], blocks: str) -> None:
    block = 96 if "96" in blocks else 256
    model = written(
        f"""
int main(int argc, char **argv) {{
  int n = atoi(argv[1]);
  float *a;
  cudaMalloc(&a, 4 * n);
  inc<<<{blocks}, {block}>>>(a, n);
}}"""
    )
    assert str(model.launches[0].trip_count) == "n"
