"""The notebooks run from top to bottom, and what they show can be shown."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path

import pytest

from docs_fixtures import skip_without_live_memory

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDS = {"torch_memory": "torch"}


def cells(notebook: Path) -> list[str]:
    """The code cells."""
    found = json.loads(notebook.read_text())["cells"]
    return ["".join(c["source"]) for c in found if c["cell_type"] == "code"]


def play(code: str, names: dict) -> object:
    """Run a cell; return its last expression, which a notebook would show."""
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None


@pytest.mark.slow
@pytest.mark.parametrize(
    "notebook",
    [
        pytest.param(n, id=n.stem, marks=pytest.mark.extra if n.stem in NEEDS else [])
        for n in NOTEBOOKS
    ],
)
def test_it_runs_from_top_to_bottom(notebook, tmp_path, monkeypatch):
    needed = NEEDS.get(notebook.stem)
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"needs {needed}")
    if notebook.stem == "live_arrays":
        skip_without_live_memory()
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "notebook"}
    shown = [play(code, names) for code in cells(notebook)]
    pages = [thing._repr_html_() for thing in shown if hasattr(thing, "_repr_html_")]
    assert len(pages) >= 1
    assert all("<table" in page for page in pages)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda n: n.stem)
def test_it_holds_no_output(notebook):
    found = json.loads(notebook.read_text())["cells"]
    assert not any(c.get("outputs") or c.get("execution_count") for c in found)
