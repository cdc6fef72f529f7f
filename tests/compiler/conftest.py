"""The example programs, compiled and run once each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from offloaded import ARGUMENTS, EXAMPLES, RunOutput, clang_19, run
from tidegate.compiler import ProgramModel, model_of_source
from tidegate.compiler.ir import clang


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compile an example that prints its launches; warnings are errors."""
    place = tmp_path_factory.mktemp("openmp")

    @cache
    def built(name: str) -> Path:
        options = ["-O1", "-Wall", "-Wextra", "-Werror", "-DPRINT_LAUNCHES", *clang.TARGET]
        subprocess.run(
            [clang_19(), *options, EXAMPLES / f"{name}.c", "-lm", "-o", place / name],
            check=True,
            timeout=120,
        )
        return place / name

    return built


@pytest.fixture(scope="session")
def output_of(build: Callable[[str], Path]) -> Callable[..., RunOutput]:
    @cache
    def ran(name: str, *more: str) -> RunOutput:
        done = run(build(name), *ARGUMENTS[name], *more)
        assert done.returncode == 0, done.stderr
        lines = [line.split() for line in done.stdout.splitlines()]
        return RunOutput(
            {line[1]: int(line[2]) for line in lines if line[0] == "object"},
            tuple(tuple(line[1:]) for line in lines if line[0] == "launch"),
            next(line[1] for line in lines if line[0] == "checksum"),
            tuple(
                line.split("kernel ")[1].split()[0]
                for line in done.stderr.splitlines()
                if "Launching kernel" in line
            ),
        )

    return ran


@pytest.fixture(scope="session")
def model() -> Callable[[str], ProgramModel]:
    clang_19()
    return cache(lambda name: model_of_source(EXAMPLES / f"{name}.c"))
