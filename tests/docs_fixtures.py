"""Files that the documentation's commands speak of, small."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tidegate.errors import TidegateError
from tidegate.live.transfer.userfault import Userfault

ROOT = Path(__file__).parent.parent

REQUESTS = "".join(
    f'{{"timestamp": {i}, "input_length": 1500, "hash_ids": [0, {i % 3 + 1}, {i + 9}]}}\n'
    for i in range(8)
)
SCRIPT = """import numpy as np

a = np.ones((64, 1024))
for _ in range(3):
    a += 1
"""
MACHINE = (ROOT / "docs" / "machines.md", "toml", "[near]")


def skip_without_live_memory() -> None:
    """Skip a test where userfaultfd cannot be used, and say why."""
    try:
        userfault, _ = Userfault.open()
    except (TidegateError, OSError) as error:
        pytest.skip(str(error))
    os.close(userfault.fd)


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def block_with(page: Path, language: str, having: str) -> str:
    return next(block for block in blocks(page, language) if having in block)


def lay_out(folder: Path, page: Path) -> None:
    """Put there what a reader of the page has: the examples, a trace, scripts, a sweep."""
    import tidegate
    from trace_importers_files import BASE, Access, nvbit

    accesses = [Access(i // 8, BASE + 65536 * (i % 48), 4, i % 3 == 0) for i in range(96)]
    nvbit(folder / "app.mem_trace", accesses)
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copyfile(ROOT / "examples" / "lagged.py", folder / "mine.py")
    for text in blocks(page, "python"):
        if re.search(r"^class \w+\((EvictionPolicy|Workload)\)", text, re.MULTILINE):
            (folder / "mine.py").write_text(text)
    (folder / "script.py").write_text(SCRIPT)
    (folder / "requests.jsonl").write_text(REQUESTS)
    (folder / "mine.toml").write_text(block_with(*MACHINE))
    for text in blocks(page, "toml"):
        if "[axes]" in text:
            text = text.replace("256MiB", "4MiB").replace("seeds = 3", "seeds = 1")
            (folder / "sizes.toml").write_text(text)
    trace = tidegate.RunSpec("cyclic(bytes=16MiB, passes=2)").trace()
    for name in ("step.parquet", "trace.parquet", "mine.parquet"):
        tidegate.save_trace(trace, folder / name)
