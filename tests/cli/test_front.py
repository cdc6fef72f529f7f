"""``tidegate`` alone, completion, examples, and options that are the same for every verb."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import typer.main

from tidegate.cli import app, invoke
from tidegate.cli.examples import examples
from tidegate.cli.usage import USES
from tidegate.errors import TidegateError


def test_tidegate_alone_shows_five_things(works):
    out = works().out
    assert len(USES) == 5
    assert [command for _, command in USES if command not in out] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_a_shell(works, shell):
    assert "_TIDEGATE_COMPLETE" in works("completion", shell).out


def test_another_shell_is_refused(capsys):
    assert invoke(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "expected"),
    [("co", {"compare", "compile", "completion"}), ("live r", {"run", "record"})],
)
def test_a_shell_that_asks_gets_verbs(words, expected):
    asked = ["tidegate", *words.split()]
    environment = os.environ | {
        "_TIDEGATE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(asked),
        "COMP_CWORD": str(len(asked) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tidegate"], env=environment, capture_output=True, text=True
    )
    assert set(done.stdout.split()) == expected


def test_examples_are_copied_as_they_are(works, tmp_path):
    works("examples", "copy", str(tmp_path / "new"))
    for name, path in examples().items():
        assert (tmp_path / "new" / name).read_bytes() == path.read_bytes()


def test_one_example_is_copied(works, tmp_path):
    works("examples", "copy", str(tmp_path), "lagged.py")
    assert [f.name for f in tmp_path.iterdir()] == ["lagged.py"]


def test_copying_overwrites_nothing(capsys, tmp_path):
    (tmp_path / "lagged.py").write_text("mine")
    assert invoke(["examples", "copy", str(tmp_path)]) == 2
    assert "lagged.py exists" in capsys.readouterr().err
    assert [f.name for f in tmp_path.iterdir()] == ["lagged.py"]
    assert invoke(["examples", "copy", str(tmp_path), "lagged"]) == 2
    assert "did you mean 'lagged.py'" in capsys.readouterr().err


# Options


def verbs() -> dict:
    """Every command by its words."""
    found = {}

    def walk(command, words):
        for name, below in getattr(command, "commands", {}).items():
            walk(below, (*words, name))
        if not getattr(command, "commands", None):
            found[" ".join(words)] = command

    walk(typer.main.get_command(app), ())
    return found


VERBS = verbs()


def options(verb: str) -> dict[str, object]:
    return {name: p for p in VERBS[verb].params for name in p.opts if name.startswith("-")}


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_to_write_is_out(verb):
    """--plot is a picture beside the answer; emit --to says what kind of code is written."""
    wrong = {"--output", "--file", "--save", *(() if verb == "emit" else ("--to",))}
    assert not wrong & set(options(verb))
    assert ("-o" in options(verb)) == ("--out" in options(verb))


@pytest.mark.parametrize("verb", VERBS)
def test_csv_is_offered_beside_json(verb):
    assert "--csv" not in options(verb) or "--json" in options(verb)


TABLES = [
    "run",
    "compare",
    "analyze",
    "list",
    "doctor",
    "trace info",
    "sweep status",
    "sweep table",
]


@pytest.mark.parametrize("verb", TABLES)
def test_verbs_that_answer_with_a_table_have_both(verb):
    assert {"--json", "--csv"} <= set(options(verb))


@pytest.mark.parametrize("verb", [v for v in VERBS if "--oversubscribe" in options(v)])
def test_levels_are_not_the_only_way_to_name_sizes(verb):
    assert verb.startswith("reproduce") or "--near" in options(verb)


@pytest.mark.parametrize("verb", VERBS)
def test_a_name_means_the_same_in_every_verb(verb):
    """Names that many verbs share have one kind of value."""
    kinds = {"--json": True, "--csv": True, "--no-cache": True, "--quick": True}
    for name, flag in kinds.items():
        if name in options(verb):
            assert options(verb)[name].is_flag == flag


@pytest.mark.parametrize("verb", [v for v in VERBS if "--bytes" in options(v)])
def test_a_size_can_be_a_share_of_the_papers(verb):
    assert "--scale" in options(verb)


@pytest.mark.parametrize("verb", [v for v in VERBS if "--eviction" in options(v)])
def test_eviction_has_one_short_name(verb):
    assert "-e" in options(verb)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--eviction", ["compare", "matmul", "-e", "lrm", "--eviction", "mru"]),
        ("--system", ["compare", "matmul", "--system=uvm", "--system", "tm"]),
        ("--near", ["run", "matmul", "--near", "1MiB", "--near=2MiB"]),
        ("--scale", ["trace", "info", "MM", "--scale", "1/2", "--scale", "1/4"]),
    ],
)
def test_no_value_is_lost_silently(option, words, capsys):
    assert invoke(words) == 2
    assert f"{option} must be given once, got it 2 times" in capsys.readouterr().err


def test_what_belongs_to_a_script_may_be_repeated(capsys):
    words = ["live", "run", "--near", "1MiB", "missing.py", "--near", "1", "--near", "2"]
    assert invoke(words) == 2
    assert "there is no script missing.py" in capsys.readouterr().err
    assert invoke(["plan", "missing.c", "--set", "n=1", "--set", "m=2"]) == 2
    assert "missing.c" in capsys.readouterr().err


def test_debug_is_ours_before_a_script_and_the_scripts_behind_it(capsys):
    assert invoke(["live", "run", "missing.py", "--debug"]) == 2
    assert "there is no script missing.py" in capsys.readouterr().err
    with pytest.raises(TidegateError, match=r"there is no script missing\.py"):
        invoke(["live", "run", "--debug", "missing.py"])


def test_every_example_says_what_it_is(capsys):
    assert invoke(["examples", "--csv"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == "example,what"
    assert "notebooks/policy_race.ipynb,A policy race" in rows
    assert all(re.match(r"\S+,\"?[A-Z]", row) for row in rows)
