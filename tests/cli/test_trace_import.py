"""tidegate trace import and export, and files of other tools in place of a workload."""

from __future__ import annotations

import pytest

from tidegate import RunSpec, run
from tidegate.errors import TidegateError
from tidegate.trace import TraceFile
from trace_importers_files import BASE, Access, lackey, moe


@pytest.fixture
def accesses(tmp_path):
    return lackey(
        tmp_path / "app.lackey", [Access(0, BASE + 65536 * (i % 40), 8, False) for i in range(200)]
    )


def test_an_imported_trace_plays_like_the_file_itself(works, accesses, tmp_path):
    saved = tmp_path / "app.parquet"
    assert "imported app.lackey (lackey)" in works("trace", "import", str(accesses), str(saved)).out
    counts = [run(str(f), near="2MiB", cache=False).counts for f in (accesses, saved)]
    assert counts[0] == counts[1]
    assert TraceFile(saved).objects[0].pages == 40


def test_options_of_the_format_are_given_with_set(works, tmp_path):
    log = moe(tmp_path / "log.jsonl", [(0, 0, [1, 2])])
    works("trace", "import", str(log), "x.parquet", "--set", "expert_bytes=1MiB")
    assert TraceFile(tmp_path / "x.parquet").footprint == 2 << 20


def test_or_behind_the_name_of_a_file_that_is_played(works, refused, tmp_path):
    log = moe(tmp_path / "log.jsonl", [(0, 0, [1, 2])])
    named = f"{log}(expert_bytes=1MiB)"
    assert RunSpec(named).trace().footprint == 2 << 20
    works("run", named, "--near", "4MiB")
    assert "expert_bytes" in refused("run", f"{log}(expert_byte=1MiB)", "--near", "4MiB")


def test_export_writes_a_file_that_can_be_imported(works, tmp_path):
    path = tmp_path / "loop.bin"
    works("trace", "export", "cyclic(bytes=4MiB)", str(path), "--format", "oracle-general")
    assert run(str(path), near="2MiB", cache=False).counts["touches"] > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["import", "FILE", "x.txt"], ".parquet"),
        (["import", "missing", "x.parquet"], "there is no file missing"),
        (["import", "FILE", "x.parquet", "--format", "nvbitt"], "did you mean 'nvbit'"),
        (["import", "FILE", "x.parquet", "--set", "a"], "--set must be NAME=VALUE"),
        (["import", "FILE", "x.parquet", "--set", "a=1"], "takes no options"),
        (["export", "cyclic", "x", "--format", "cvs"], "csv"),
    ],
)
def test_wrong_input_is_one_line(refused, accesses, arguments, said):
    assert said in refused("trace", *(str(accesses) if a == "FILE" else a for a in arguments))


def test_bytes_do_not_go_with_a_file(accesses):
    with pytest.raises(TidegateError, match="has its size already"):
        run(str(accesses), bytes="1GiB")


def test_names_in_files_are_not_obeyed_by_terminals_and_spreadsheets(works, refused, tmp_path):
    log = moe(tmp_path / "=1+\x1b]0;title\x07\n.jsonl", [(0, 0, [1, 2])])
    shown = [
        works("trace", "info", str(log)),
        works("run", str(log), "--near", "16MiB", "--no-cache"),
        works("compare", str(log), "--near", "16MiB", "-e", "lrm,mru", "--csv"),
        works("trace", "import", str(log), "x.parquet"),
        works("trace", "info", "x.parquet"),
    ]
    for said in shown:
        assert all(line.isprintable() for line in (said.out + said.err).splitlines())
    assert not any(cell.startswith("=") for cell in shown[2].out.replace("\n", ",").split(","))
    error = refused("trace", "info", str(tmp_path / "none\x1b[2J"))
    assert error.strip().isprintable()
