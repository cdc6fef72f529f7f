"""Every command and every Python block of the documentation runs, at a small size.

A page is read from top to bottom in a folder of its own. What is not run is excused below, with
the reason; a new command that is neither run nor excused fails.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from docs_fixtures import ROOT, blocks, lay_out, skip_without_live_memory
from tidegate.cli import invoke
from tidegate.driver.kernel import missing

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.name != "cli.md"),
]
MINUTES = "takes minutes; tests/reproduce runs the same verb at a small scale"
TORCH = "needs PyTorch, which takes seconds to import; tests/record and tests/advice run it"
SERVES = "serves or shows until Ctrl-C; tests/studio and tests/live/test_top.py run it"
OWN_PROCESS = "replaces the allocator of its process; tests/live/test_script.py runs it in one"
CLUSTER = "needs a cluster; tests/experiments/sweeps run one of Dask's own"
EXCUSED = {
    r"make ": "sets up an environment of its own; continuous integration runs it",
    r"(python3? -m )?pip ": "needs a network",
    r"(dask|pre-commit|git|python|nvcc|cc) ": "another program",
    r"tidegate (advise|plan) program\.cu": "needs CUDA's headers; tests/advice/test_preload.py",
    r"TIDEGATE_PLAN=": "a CUDA program; tests/advice/test_preload.py runs one",
    r"tidegate reproduce ": MINUTES,
    r"tidegate record ": TORCH,
    r"tidegate advise (train\.py|'gpt|script\.py)": TORCH,
    r"tidegate advise .*--emit (torch|.*--live)": TORCH,
    r"tidegate studio": SERVES,
    r"tidegate live top": SERVES,
    r"tidegate .*--studio": SERVES,
    r"tidegate live (run|record)": OWN_PROCESS,
    r"tidegate sweep run .*--on ": CLUSTER,
    r"tidegate cache clear": "would remove compiled code of other tests; tests/cli/test_cache.py",
    r"tidegate calibrate probe\.csv": "reads what a card printed; tests/validate makes such files",
    r"tidegate validate report": "reads a profile of a card; tests/validate makes such files",
    r"tidegate completion ": "appends to a file of the user's; tests/cli/test_front.py",
}
SYNTHETIC = ("matmul", "blackscholes", "stencil", "chase", "cyclic", "stream", "uniform", "zipf")
APPLICATION = re.compile(r"(cppe-|gmt-)?[A-Z][\w+]*$")
CLANG = shutil.which("clang-19")
SIZES = {"10GB": "16MiB", "10GiB": "16MiB", "1GiB": "16MiB", "512MiB": "16MiB", "256MiB": "16MiB"}
# Python blocks that cannot run on their own
FRAGMENTS = {
    "docs/advice.md": "reads a recording of PyTorch; tests/advice run the same calls",
    "docs/live.md": "opens files of weights and 800 MB; tests/live run the same calls",
    "docs/gmt.md": "a fragment",
    "docs/programs.md": "records PyTorch; tests/record run the same calls",
    "docs/caching.md": "a fragment; tests/experiments/test_stale.py runs classes with `keep`",
}


def commands(page: Path) -> list[str]:
    """Return what a reader of the page would type, in order."""
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def excuse(command: str) -> str:
    """Return why a command is not run, or nothing."""
    return next((why for what, why in EXCUSED.items() if re.match(what, command)), "")


def small(words: list[str]) -> list[str]:
    """Return the command at a size that takes a moment."""
    words = [w.replace("256MiB", "16MiB") if "(" in w else w for w in words]
    for option, value in (("--bytes", "8MiB"), ("--scale", "1/128")):
        if option in words:
            words[words.index(option) + 1] = value
    if words[0] in ("run", "compare", "analyze", "emit") and not {"--bytes", "--scale"} & set(
        words
    ):
        if {w.partition("(")[0] for w in words} & set(SYNTHETIC):
            words += ["--bytes", "8MiB"]
        elif words[0] != "analyze" and any(APPLICATION.match(w) for w in words[1:3]):
            words += ["--scale", "1/128"]
    if words[0] in ("compare", "advise") or words[:2] == ["sweep", "run"]:
        words += ["--workers", "1"]  # starting processes takes longer than these runs
    return words


def run(command: str, capsys) -> None:
    command = command.removeprefix(".venv/bin/")
    words = shlex.split(command.partition(" > ")[0], comments=True)
    assert words[0] == "tidegate", f"{command}: neither run nor excused"
    if {"compile", "plan", "advise"} & set(words) and ".c" in command and not CLANG:
        return
    if "--to bpf" in command and "--check" in command and missing():
        return
    code = invoke(small(words[1:]))
    assert code == 0, f"{command}: {capsys.readouterr().err}"
    capsys.readouterr()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [p for p in PAGES if commands(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_commands_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    left = [c for c in commands(page) if not excuse(c)]
    if left:
        lay_out(tmp_path, page)
    for command in left:
        run(command, capsys)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: str(p.relative_to(ROOT))
)
def test_python_runs(page, tmp_path, monkeypatch, capsys):
    name = str(page.relative_to(ROOT))
    if name in FRAGMENTS:
        pytest.skip(FRAGMENTS[name])
    text = "\n".join(blocks(page, "python"))
    if "Arena(" in text:
        skip_without_live_memory()
    monkeypatch.chdir(tmp_path)
    lay_out(tmp_path, page)
    for large, little in SIZES.items():
        text = text.replace(large, little)
    names: dict = {"__name__": "docs_page"}
    with contextlib.redirect_stdout(sys.stderr):
        exec(compile(text, name, "exec"), names)


def test_every_excuse_is_needed():
    said = [c for page in PAGES for c in commands(page)]
    assert [e for e in EXCUSED if not any(re.match(e, c) for c in said)] == []
