"""The wheel and the source archive: they build, hold what is needed, and work where installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytest.importorskip("hatchling", reason="the wheel is built with hatchling, which is missing")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package_and_the_examples(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, place in (
        (ROOT / "src" / "tidegate", "tidegate"),
        (ROOT / "examples", "tidegate/examples"),
    ):
        here = {f.relative_to(folder) for f in folder.rglob("*") if f.is_file()}
        here = {f for f in here if "__pycache__" not in f.parts}
        assert {f"{place}/{f}" for f in here} <= names
    assert "tidegate/studio/page/index.html" in names
    assert "tidegate/py.typed" in names
    assert not [n for n in names if "__pycache__" in n or n.startswith(("tests/", "docs/"))]


def test_the_source_archive_holds_what_the_tests_need(built):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {n.partition("/")[2] for n in files.getnames()}
    assert {"pyproject.toml", "Makefile", "README.md", "LICENSE", "tests/test_package.py"} <= names
    assert {
        "requirements.lock",
        "requirements-dev.lock",
        "docs/glossary.md",
        "examples/lagged.py",
    } <= names


def test_the_metadata_name_pythons_and_extras(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
    lines = archive.read(name).decode().splitlines()
    for version in ("3.11", "3.12", "3.13"):
        assert f"Classifier: Programming Language :: Python :: {version}" in lines
    extras = {
        line.removeprefix("Provides-Extra: ") for line in lines if line.startswith("Provides")
    }
    assert {"torch", "triton", "studio", "cluster", "cuda", "all"} <= extras


@pytest.mark.slow
def test_an_installed_tidegate_works(wheel, tmp_path):
    """In an environment of its own, with the dependencies of this one: no network is used."""
    place = tmp_path / "venv"
    venv.create(place)
    command = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install"]
    subprocess.run([*command, "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_paths()["purelib"])
    bare = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def tidegate(*words: str) -> str:
        done = subprocess.run(
            [str(place / "bin" / "tidegate"), *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env=bare,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "Usage: tidegate" in tidegate("--help")
    assert "tidegate compare" in tidegate()
    tidegate("examples", "copy", "mine")
    assert (tmp_path / "mine" / "lagged.py").read_text() == (
        ROOT / "examples" / "lagged.py"
    ).read_text()
    assert "rtx3090-pcie4" in tidegate("list", "machines")
