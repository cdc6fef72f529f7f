"""Versions agree, and the release script, citation and paper are well formed."""

from __future__ import annotations

import doctest
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def script(name: str):
    """A module of scripts/."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_place_states_the_same_version():
    stated = script("release").stated_versions()
    assert len(set(stated.values())) == 1, stated


def test_the_changelog_names_the_version():
    (version,) = set(script("release").stated_versions().values())
    assert re.search(rf"^## {re.escape(version)} \(", (ROOT / "CHANGELOG.md").read_text(), re.M)


def test_the_examples_of_the_release_script_are_so():
    assert doctest.testmod(script("release")).failed == 0


@pytest.mark.parametrize("given", [[], ["next"], ["1.0"], ["1.0.0", "2.0.0"]])
def test_a_release_needs_a_version(given):
    with pytest.raises(SystemExit, match="VERSION"):
        script("release").main(given)


def test_a_changelog_without_news_is_refused():
    with pytest.raises(SystemExit, match="unreleased"):
        script("release").dated("# Changelog\n\n## 0.1.0 (2026-01-02)\n", "0.2.0", "2026-02-03")


def test_the_paper_cites_what_its_bibliography_has():
    cited = set(re.findall(r"@(\w+)", (ROOT / "paper.md").read_text()))
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(), re.M))
    assert cited == known


def test_citations_agree_on_identifiers():
    dois = [
        set(re.findall(r"10\.\d{4,}/[\w.]+\w", (ROOT / name).read_text()))
        for name in ("CITATION.cff", "paper.bib")
    ]
    assert dois[0] <= dois[1]


def test_workflows_test_the_pythons_that_are_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = {c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)}
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    tested = set(re.findall(r'"(3\.\d+)"', workflow))
    assert promised == tested


def test_the_command_reference_has_every_verb():
    page = script("cli_reference").reference()
    for verb in ("run", "compare", "sweep run", "live record", "examples copy", "completion"):
        assert f"\n## tidegate {verb}\n" in page
    assert "`--oversubscribe`" in page
