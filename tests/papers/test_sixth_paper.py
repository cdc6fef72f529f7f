"""A further paper is one folder: nothing else names it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate import papers as reproduce
from tidegate.cli import invoke

FILES = {
    "__init__.py": '"""A sixth paper."""',
    "claims.toml": """
setup = "one loop"
[claim.S1]
kind = "exact"
value = 3
where = "1"
text = "a loop of so many passes"
[words]
"Figure 1" = "A loop."
""",
    "setup.py": '''
from dataclasses import dataclass
from typing import ClassVar

from tidegate.papers import setup
from tidegate.papers.setup import option


@dataclass(frozen=True)
class Setup(setup.Setup):
    """A sixth paper: one loop."""

    citation: ClassVar[str] = "Loops (2031)"
    year: ClassVar[int] = 2031
    example: ClassVar[str] = "--passes 2,3"

    passes: tuple[int, ...] = option((3,), "Passes of the loop, with commas.")

    def describe(self) -> str:
        return f"A loop with {self.passes} passes."
''',
    "paper.py": """
import polars as pl
from matplotlib.figure import Figure

from tidegate.experiments.specification import RunSpec
from tidegate.papers import paper
from tidegate.papers.report import make_exhibit
from tidegate.papers.results import find, part
from tidegate.papers.sixth.setup import Setup


class Sixth(paper.Paper[Setup]):
    name = "sixth"
    setup = Setup

    def grid(self, setup):
        return {
            ("loop", "uvm", str(n)): RunSpec(f"cyclic(bytes=16MiB, passes={n})", near="32MiB")
            for n in setup.passes
        }

    def findings(self, setup, results):
        launches = lambda claim, r: claim.exact(len(setup.passes) and setup.passes[0])
        return find(self.claims, [part("S1", "", launches)], results)

    def exhibits(self, setup, results):
        table = pl.DataFrame({"passes": list(results), "pages": [
            r.run("loop", "uvm").counts["pages_in"] for r in results.values()
        ]})
        yield make_exhibit("sixth", "Figure 1", "a loop", table, Figure)


PAPER = Sixth()
""",
}


@pytest.fixture
def sixth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "sixth"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    monkeypatch.setattr(reproduce, "__path__", [*reproduce.__path__, str(tmp_path)])
    _forget()
    yield
    _forget()


def _forget() -> None:
    reproduce.paper_names.cache_clear()
    reproduce._folders.cache_clear()
    for name in [m for m in sys.modules if m.startswith("tidegate.papers.sixth")]:
        del sys.modules[name]


@pytest.mark.usefixtures("sixth")
def test_a_folder_is_a_paper_with_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.paper_names()[0] == "sixth"  # the newest
    assert invoke(["reproduce", "sixth", "--passes", "3,4", "--workers", "1", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["title"] == "Loops (2031)"
    # the paper has 3 passes only
    assert [f["outcome"] for f in found["ledger"]] == ["holds with --passes 3,4"]
    assert found["exhibits"][0]["rows"] == [
        {"passes": "3", "pages": 256},
        {"passes": "4", "pages": 256},
    ]
    assert "with --passes 3,4, not as published" in found["notes"][1]
    assert invoke(["reproduce", "sixth", "--workers", "1", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [f["verdict"] for f in found["ledger"]] == ["HOLDS"]
    assert invoke(["reproduce", "sixth", "--passes", "three"]) == 2
    assert "--passes must be numbers with commas" in capsys.readouterr().err


def test_without_the_folder_there_is_no_such_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["reproduce", "sixth"]) == 2
    assert "sixth" in capsys.readouterr().err
