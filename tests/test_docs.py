"""What the documentation shows is so: doctests, the README's policy, the docs' examples, commands
and links.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import pkgutil
import re
import shlex
import sys
import tokenize
import tomllib
from pathlib import Path

import polars as pl
import pytest

import tidegate
from docs_fixtures import blocks
from tidegate.cli import invoke
from tidegate.experiments import store
from tidegate.machine import load_machine

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "tidegate"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARTIFACT.md", "SECURITY.md")),
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.name != "cli.md"),  # it is generated
]
MODULES = [
    "tidegate",
    *(
        m.name
        for m in pkgutil.walk_packages(tidegate.__path__, "tidegate.")
        if not m.name.endswith("__main__")
    ),
]


def first_block(page: Path, language: str, having: str) -> str:
    for block in blocks(page, language) if page.exists() else []:
        if having in block:
            return block
    pytest.skip(f"{page.name} shows no {language} with {having} yet")


def each(language: str) -> list:
    return [
        pytest.param(text, id=f"{page.name}-{i}")
        for page in PAGES
        for i, text in enumerate(blocks(page, language))
    ]


# Docstrings


def imported(name: str):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "triton", "starlette", "uvicorn"):
            pytest.skip(f"{name} needs {error.name}, which is not installed")
        raise


def source_of(name: str) -> str:
    place = SOURCE.joinpath(*name.split(".")[1:])
    return (
        place / "__init__.py" if (place / "__init__.py").is_file() else place.with_suffix(".py")
    ).read_text()


@pytest.mark.parametrize("name", [n for n in MODULES if ">>>" in source_of(n)])
def test_doctests(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # nothing is fetched from earlier runs
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    assert doctest.testmod(imported(name)).failed == 0


def test_every_module_says_what_it_is_for():
    assert [n for n in MODULES if not ast.get_docstring(ast.parse(source_of(n)))] == []


def test_every_public_name_is_there_and_documented():
    for name in tidegate.__all__:
        assert (getattr(tidegate, name).__doc__ or "").strip(), name
    with pytest.raises(AttributeError, match="nothing"):
        _ = tidegate.nothing
    assert dir(tidegate) == sorted(dir(tidegate))


# The README's own policy


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_policy_in_the_readme_runs_as_printed(here, capsys):
    text = first_block(ROOT / "README.md", "python", "EvictionPolicy")
    (here / "mine.py").write_text(text)
    (name,) = re.findall(r"^class (\w+)\(EvictionPolicy\)", text, re.MULTILINE)
    code = invoke(
        ["compare", "blackscholes", "--bytes", "64MiB", "--eviction", f"lrm,mru,mine.py:{name}"]
    )
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert re.findall(r"^  (\S+) +[\d.]+ [mu]s ", out, re.MULTILINE) == [
        "lrm",
        "mru",
        name,
        "belady",
    ]


def test_it_is_the_example_it_says_it_is():
    readme = (ROOT / "README.md").read_text()
    text = first_block(ROOT / "README.md", "python", "EvictionPolicy")
    example = re.search(r"\((examples/\w+\.py)\)", readme)
    assert example, "the README links its example"
    assert defined(text) == defined((ROOT / example[1]).read_text())


def defined(text: str) -> list[str]:
    """The classes of a module, as trees: comments and layout do not count."""
    return [ast.dump(node) for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize(
    "file", sorted((ROOT / "examples").glob("*.py")), ids=lambda file: file.name
)
def test_the_examples_run(here, capsys, file):
    text = file.read_text()
    if "(EvictionPolicy)" in text:
        assert invoke(["compare", "stencil", "--bytes", "32MiB", "-e", f"lrm,{file}"]) == 0
    elif "(Workload)" in text:
        assert invoke(["run", str(file)]) == 0


# Code in the pages


@pytest.mark.parametrize("text", each("python"))
def test_python_is_python(text):
    ast.parse(text)


@pytest.mark.parametrize("text", each("toml"))
def test_toml_is_toml(text):
    tomllib.loads(text)


def test_the_machine_in_the_docs_works(here, capsys):
    (here / "mine.toml").write_text(first_block(ROOT / "docs" / "machines.md", "toml", "[near]"))
    assert load_machine("mine.toml").near.slots > 0
    assert invoke(["run", "cyclic(bytes=16MiB, passes=1)", "--machine", "mine.toml"]) == 0


def test_the_policy_in_the_docs_works(here):
    (here / "mine.py").write_text(
        first_block(ROOT / "docs" / "how-to" / "policy.md", "python", "class Oldest")
    )
    mine, fifo = (
        tidegate.run("zipf(bytes=64MiB, touches=20000)", eviction=policy, cache=False)
        for policy in ("mine.py:Oldest", "fifo")
    )
    assert mine.counts == fifo.counts
    assert mine.parts == fifo.parts


@pytest.mark.parametrize("size", ["256MiB", "16MiB", "10MB"])
def test_the_workload_in_the_docs_works(here, capsys, size):
    (here / "mine.py").write_text(
        first_block(ROOT / "docs" / "how-to" / "workload.md", "python", "(Workload)")
    )
    assert invoke(["run", "mine.py:Transpose", "--bytes", size]) == 0


@pytest.mark.slow
def test_the_python_api_page_works_from_top_to_bottom(here):
    names: dict = {}
    for block in blocks(ROOT / "docs" / "api.md", "python"):
        if "Arena(" in block and sys.platform != "linux":
            continue
        exec(block, names)
    assert names["race"].table.height == 3 * 4 * 2
    assert (names["race"].failures, len(names["runs"])) == ([], 4)
    assert (here / "race.png").stat().st_size > 1000


def test_the_metadata_of_a_trace_file_are_as_shown(here):
    page = (ROOT / "docs" / "traces.md").read_text()
    shown = json.loads(first_block(ROOT / "docs" / "traces.md", "json", "format"))
    trace = tidegate.RunSpec(shown["name"]).trace()
    tidegate.save_trace(trace, "loop.parquet")
    found = json.loads(pl.read_parquet_metadata("loop.parquet")["tidegate"])
    assert {key: found[key] for key in shown} == shown
    assert [key for key in found if f"| `{key}` |" not in page] == []


def test_the_python_in_the_readme_works(here):
    text = first_block(ROOT / "README.md", "python", "tidegate.run(")
    exec(text.replace("1GiB", "16MiB"), {})
    assert (here / "run.png").stat().st_size > 1000


# Commands in the pages


def commands() -> list:
    texts = [(page, text) for page in PAGES for text in blocks(page, "console")]
    texts += [
        (page, text) for page in PAGES for text in re.findall("`(tidegate .*?)`", page.read_text())
    ]
    lines = [(page, line) for page, text in texts for line in text.splitlines()]
    found = [
        (page, re.match(r"(?:\$ )?(?:\.venv/bin/)?tidegate (.*)", line)) for page, line in lines
    ]
    return [pytest.param(match[1], id=f"{page.name}: {match[1]}") for page, match in found if match]


@pytest.mark.slow
@pytest.mark.parametrize("command", commands())
def test_commands_have_the_options_they_are_shown_with(command, capsys):
    words = shlex.split(command, comments=True)
    groups = ("trace", "reproduce", "live", "record", "sweep", "examples", "cache")
    verb = words[: 2 if words[0] in groups and len(words) > 1 else 1]
    assert invoke([*verb, "--help"]) == 0
    known = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", capsys.readouterr().out))
    assert {w for w in words if w.startswith("-")} <= known


def targets() -> list[str]:
    return re.findall(r"(?m)^([a-z-]+):.*##", (ROOT / "Makefile").read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_targets_of_make_exist(page):
    assert set(
        re.findall(
            r"\bmake ([a-z][a-z-]*)\b",
            "\n".join(re.findall("```console.*?```|`make .*?`", page.read_text(), re.DOTALL)),
        )
    ) <= set(targets())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text())
    assert [link for link in links if not leads_somewhere(page, link)] == []


def leads_somewhere(page: Path, link: str) -> bool:
    """Whether a link's file is there, and has the heading that it names."""
    name, _, heading = link.partition("#")
    file = page.parent / name if name else page
    generated = file.name == "cli.md"
    return generated or (file.exists() and (not heading or heading in headings(file)))


def headings(page: Path) -> set[str]:
    """The anchors of a page's headings, as forges and the site make them."""
    found = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", h)) for h in found)
    return {h.strip().lower().replace(" ", "-") for h in plain}


def test_every_page_is_in_the_navigation():
    index = (ROOT / "docs" / "index.md").read_text()
    listed = set(re.findall(r"^(?:.* <)?([\w/-]+)>?$", index, re.MULTILINE))
    pages = {
        str(p.relative_to(ROOT / "docs").with_suffix(""))
        for p in PAGES
        if p.is_relative_to(ROOT / "docs")
    }
    assert pages <= listed | {"index"}


def test_no_page_has_marks_of_an_unfinished_merge():
    marks = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.MULTILINE)
    assert [p.name for p in PAGES if marks.search(p.read_text())] == []


def test_pictures_are_made_by_the_script_of_figures():
    made = (ROOT / "scripts" / "figures.py").read_text()
    pictures = [p for p in (ROOT / "docs").rglob("*") if p.suffix in (".png", ".svg")]
    assert [p.name for p in pictures if p.name not in made] == []


# Files that the source names

# files of users in examples, and of NVIDIA's driver
OTHERS_FILES = re.compile(
    r"(mine|script|train|kernels)\.py|sizes\.toml|nn\.c|(a|b|path/to)/\w+\.py|uvm_\w+\.c"
)
NAMED = re.compile(r"(?<![\w./*-])((?:[\w-]+/)*[\w-]+\.(?:py|md|c|toml))(?![\w/(])")


def sayings(file: Path) -> str:
    """Return the comments and docstrings of a file, and its strings with a page of docs."""
    with tokenize.open(file) as lines:
        found = [
            token.string
            for token in tokenize.generate_tokens(lines.readline)
            if token.type == tokenize.COMMENT
            or (token.type == tokenize.STRING and '"""' in token.string[:4])
            or (token.type in (tokenize.STRING, FSTRING) and "docs/" in token.string)
        ]
    return "\n".join(line for text in found for line in text.splitlines() if ">>>" not in line)


FSTRING = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)  # Python 3.12 takes them apart


def is_there(name: str, file: Path) -> bool:
    """Return whether a named file exists: from the root, from the package or a package around the
    file; a name without a folder may be anywhere in the package.
    """
    if OTHERS_FILES.fullmatch(name):
        return True
    if "/" not in name:
        return any(SOURCE.rglob(name))
    around = [folder for folder in file.parents if folder.is_relative_to(SOURCE)]
    return any((folder / name).is_file() for folder in (ROOT, *around))


def test_files_named_in_comments_and_docstrings_exist():
    named = [
        (str(file.relative_to(SOURCE)), name)
        for file in sorted(SOURCE.rglob("*.py"))
        for name in NAMED.findall(sayings(file))
        if not is_there(name, file)
    ]
    assert named == []
