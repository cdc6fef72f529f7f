"""LLVM's estimates of branch probabilities."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tidegate.errors import TidegateError

Edges = dict[tuple[str, str], float]

_EDGE = re.compile(
    r'^\s*edge %"?([^"\s]+)"? -> %"?([^"\s]+)"? probability is 0x([0-9a-f]+) / 0x([0-9a-f]+)'
)
_FUNCTION = re.compile(r"^Writing '.*/cfg\.(.+)\.dot'")


def branch_probabilities(text: str) -> dict[str, Edges]:
    """Return the probability of each edge between blocks, by function.

    `text`: the module; its blocks must have names.
    """
    program = Path(__file__).with_name("print_probabilities.py")
    # -P: modules in this folder must not hide others of the same name
    command = [sys.executable, "-P", str(program)]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().split("\n")[-1]
        raise TidegateError(
            f"LLVM printed no branch probabilities ({said}); install llvmlite 0.44 or newer"
        )
    functions: dict[str, Edges] = {}
    edges: Edges = {}
    for line in done.stderr.splitlines():
        if found := _EDGE.match(line):
            edges[found[1], found[2]] = int(found[3], 16) / int(found[4], 16)
        elif named := _FUNCTION.match(line):
            functions[named[1]] = edges
            edges = {}
    return functions
