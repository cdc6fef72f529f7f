"""Save the models of examples/openmp, which are workloads: ``python scripts/example_models.py``.

Needs clang 19. Run it when the compiler's analysis gives something else for the examples;
tests/papers/hybrid/applications/test_openmp.py says so.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tidegate.compiler import model_of_source
from tidegate.compiler.model_file import save

ROOT = Path(__file__).parent.parent
MODELS = ROOT / "src" / "tidegate" / "workloads" / "openmp" / "models"
# clang puts numbers of the file system into kernels' names
FILE_NUMBERS = re.compile(r"__omp_offloading_[0-9a-f]+_[0-9a-f]+_")

if __name__ == "__main__":
    for source in sorted((ROOT / "examples" / "openmp").glob("*.c")):
        model = model_of_source(source)
        regions = (replace(r, kernel=FILE_NUMBERS.sub("", r.kernel)) for r in model.regions)
        path = MODELS / f"{source.stem}.json"
        save(replace(model, source=source.name, regions=tuple(regions)), path)
        print(path.relative_to(ROOT))
