"""A policy of the user's own, in a file or an installed package, works by name everywhere."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tidegate import registry
from tidegate.errors import PolicyError, TidegateError, UnknownName
from tidegate.policies.registries import eviction, prefetch
from tidegate.policy import EvictionPolicy
from tidegate.registry import Registry
from tidegate.user_code.fingerprint import fingerprint
from traces import flat, machine, run_of

MINE = """
from tidegate.policy import EvictionPolicy, Option

class Mine(EvictionPolicy):
    '''Evict by arrival; the oldest, or the newest but some.'''
    newest = Option(False, "the other end")

    def on_fault(self, region):
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)

    def victim(self):
        return self.order.tail if self.newest else self.order.head

    def finished(self):
        assert set(self.order) == self.resident
"""
LOOP = flat(list(range(6)) * 4)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def faults(policy: str) -> int:
    return run_of(LOOP, machine(), 4, eviction=policy).counts["faults"]


def test_a_class_in_a_file_runs_by_the_files_name_or_its_own(mine):
    fifo, mru = faults("fifo"), faults("mru")
    assert faults(f"{mine}") == faults(f"{mine}:Mine") == fifo
    assert faults(f"{mine}:Mine(newest=true)") == mru < fifo
    run = run_of(LOOP, machine(), 4, eviction=f"{mine}:Mine(newest=true)")
    assert run.facts["eviction"] == "Mine(newest=True)"


def test_the_readmes_example_runs():
    example = Path(__file__).parents[2] / "examples" / "lagged.py"
    assert faults(f"{example}:Lagged(lag=1)") < faults("fifo")


def test_two_files_of_the_same_name_are_two_policies(tmp_path):
    for folder, end in (("a", "head"), ("b", "tail")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(
            MINE.replace("self.order.head", f"self.order.{end}")
        )
    assert faults(f"{tmp_path / 'a' / 'mine.py'}") > faults(f"{tmp_path / 'b' / 'mine.py'}")


def test_an_edited_file_is_loaded_anew(mine, monkeypatch):
    # an edit within a second, and no longer, would find the old .pyc
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = faults(f"{mine}:Mine")
    old = fingerprint(eviction.find(f"{mine}:Mine")).digest
    mine.write_text(MINE.replace("self.order.head", "self.order.tail"))
    assert faults(f"{mine}:Mine") < before
    assert fingerprint(eviction.find(f"{mine}:Mine")).digest != old


def test_a_class_is_known_by_what_it_was_loaded_from(mine):
    """Or else a run of the old class would be kept under the new one's name."""
    loaded = eviction.find(f"{mine}:Mine")
    digest = fingerprint(loaded).digest
    mine.write_text(MINE + "# a remark\n")
    assert fingerprint(loaded).digest == digest


BAD_FILES = [
    ("class Mine(\n", r".*bad\.py, line \d+: .*; correct the syntax error and try again"),
    (
        "import no_such_module\n",
        r".*bad\.py cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
    ),
    ("1 / 0\n", r".*bad\.py cannot be imported: ZeroDivisionError: division by zero"),
    (
        "x = 1\n",
        r".*bad\.py must have a class that extends tidegate\.policy\.EvictionPolicy, got none",
    ),
    ("from tidegate.policy import EvictionPolicy\n", r".*bad\.py must have a class that extends"),
    ("", r".*bad\.py must have a class that extends"),
    (
        MINE + MINE.replace("Mine", "Other"),
        r".*bad\.py has several classes; give one: .*bad\.py:Mine, .*bad\.py:Other",
    ),
]


@pytest.mark.parametrize(("text", "complaint"), BAD_FILES)
def test_a_file_that_holds_no_policy_is_refused_in_one_line(tmp_path, text, complaint):
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(TidegateError, match=complaint) as error:
        eviction.find(str(path))
    assert "\n" not in str(error.value)


def test_a_file_that_is_put_right_works(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("class Mine(\n")
    with pytest.raises(TidegateError):
        eviction.find(str(path))
    path.write_text(MINE)
    assert eviction.find(str(path)).__name__ == "Mine"


def test_a_class_that_is_not_in_the_file_is_refused_with_the_nearest(mine):
    with pytest.raises(
        UnknownName, match=r"unknown eviction in .*mine\.py 'Mime'; did you mean 'Mine'\?"
    ):
        eviction.find(f"{mine}:Mime")
    with pytest.raises(
        TidegateError, match=r"mine\.py must have a class .* tidegate\.policy\.PrefetchPolicy"
    ):
        prefetch.find(f"{mine}:Mine")
    with pytest.raises(TidegateError, match=r"no file .*absent\.py; give a Python file"):
        eviction.find(f"{mine.parent / 'absent.py'}:Mine")


def test_a_user_policy_that_raises_is_named(mine):
    mine.write_text(
        MINE.replace("return self.order.tail if", "raise ValueError('no') if").replace(
            "False", "True"
        )
    )
    with pytest.raises(
        PolicyError,
        match=r"policy 'Mine' raised in victim\(\): ValueError: no \(\w+\.py, line \d+\)$",
    ):
        faults(f"{mine}:Mine")


class Installed(EvictionPolicy):
    """What another package would bring."""


def test_an_installed_package_adds_policies_by_entry_point(monkeypatch):
    points = [EntryPoint("installed", f"{__name__}:Installed", "tidegate.eviction")]
    monkeypatch.setattr(EntryPoint, "load", lambda self: Installed)
    monkeypatch.setattr(
        registry, "entry_points", lambda group: points if group == "tidegate.eviction" else []
    )
    family = Registry("eviction", lambda: EvictionPolicy, "tidegate.policies.eviction")
    assert family.find("installed") is Installed
    assert "installed" in family.names()


def test_an_installed_package_that_cannot_be_loaded_is_named(monkeypatch):
    points = [EntryPoint("broken", "no_such_package:Policy", "tidegate.eviction")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    family = Registry("eviction", lambda: EvictionPolicy, "tidegate.policies.eviction")
    with pytest.raises(
        TidegateError, match="eviction 'broken' of package no_such_package:Policy cannot be loaded"
    ):
        family.find("broken")


def test_a_class_without_a_file_is_the_user_s():
    nowhere = type("Nowhere", (EvictionPolicy,), {"__module__": "a_notebook_cell"})
    assert fingerprint(nowhere).local == {nowhere}
