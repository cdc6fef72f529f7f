"""``python -m benchmarks.large_program``: the compiler's time for a program of many functions, and
the planner's for a large machine. Processor time, clang's included.

    compile   a generated program of 20,000 functions that call each other in layers, keep pointers
              in structures, allocate, and launch 40 regions
    plan      examples/openmp/cfd.c for 16 GiB of near memory, with 33 GiB of objects
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_CFD = Path(__file__).parents[1] / "examples" / "openmp" / "cfd.c"
_LAYERS, _REGIONS = 10, 40
_SIDE = 16384  # of cfd's grid: 33 GiB in all


def program(functions: int) -> str:
    """Return the source of a program with so many functions."""
    return "\n".join(_lines(functions))


def _lines(functions: int) -> Iterator[str]:
    yield "#include <stdlib.h>"
    yield "struct part { float *data; struct part *next; int n; };"
    each = functions // _LAYERS
    for number in range(functions):
        layer, place = divmod(number, each)
        body = f"p->n += {number};"
        if layer:
            below = (layer - 1) * each
            body += (
                f" return f{below + (7 * place + 1) % each}(p->n % 2 ? p : p->next, k + {place});"
            )
        else:
            body += " p->data[k % p->n] = k; return p;"
        yield "__attribute__((noinline))"
        yield f"static struct part *f{number}(struct part *p, int k) {{ {body} }}"
    yield "int main(int c, char **v) {"
    yield "  int n = atoi(v[1]);"
    yield "  struct part *p = malloc(sizeof *p);"
    yield "  p->next = p; p->n = n; p->data = malloc(4 * n);"
    top = functions - each
    for region in range(_REGIONS):
        yield f"  float *x{region} = malloc(4 * n);"
        for k in range(region, each, _REGIONS):
            yield f"  p = f{top + k}(p, {k});"
        yield f"#pragma omp target teams distribute parallel for map(tofrom: x{region}[0:n])"
        yield f"  for (int i = 0; i < n; i++) x{region}[i] += p->n;"
    yield "  return p->n;"
    yield "}"


def seconds(*words: object) -> tuple[float, str]:
    """Return the processor time of a tidegate command, and the last line it says."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "tidegate", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return used, f"exit code {done.returncode}: {(said or [''])[-1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", type=int, default=20_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "large.c")
        source.write_text(program(asked.functions))
        used, said = seconds("compile", source)
        print(f"compile, {asked.functions:,} functions: {used:.1f} s ({said})")
    used, said = seconds("plan", _CFD, "--near", "16GiB", "--set", f"side={_SIDE}")
    print(f"plan, cfd at 16 GiB: {used:.1f} s ({said})")


if __name__ == "__main__":
    main()
