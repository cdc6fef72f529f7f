"""Names → things."""

from __future__ import annotations

import importlib.metadata
import pickle
import sys
from types import SimpleNamespace

import pytest

from tidegate import registry as module
from tidegate.errors import TidegateError, UnknownName
from tidegate.options import Configurable, Option
from tidegate.policies.interface.policy import EvictionPolicy
from tidegate.policies.registries import eviction, placement, prefetch
from tidegate.registry import Registry
from tidegate.workloads import workloads


class Thing(Configurable):
    size = Option(1, "how large")


@pytest.fixture
def things(tmp_path, monkeypatch):
    """A family of its own, with one member in its folder."""
    folder = tmp_path / "things_of_the_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = Registry("thing", lambda: Thing, "things_of_the_test")
    found("first")(type("First", (Thing,), {}))
    yield found
    for name in [n for n in sys.modules if n.startswith("things_of_the_test")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("registry", "names"),
    [
        (eviction, {"lrm", "lru-ideal", "fifo", "mru", "random", "clock", "belady"}),
        (prefetch, {"none", "tree", "region"}),
        (placement, {"um", "host"}),
        (
            workloads,
            {"matmul", "blackscholes", "stencil", "chase", "cyclic", "stream", "uniform", "zipf"},
        ),
    ],
)
def test_what_comes_with_it(registry, names):
    assert names <= set(registry.names())
    assert registry.names() == sorted(registry.names())
    for name in names:
        assert registry.find(name).name == name
        assert registry.find(name.upper()) is registry.find(name)
        assert (registry.find(name).__doc__ or "").strip(), f"{name} does not say what it is"
        assert isinstance(registry.make(name), registry.find(name))


def test_options_come_with_the_name(things):
    assert things.make("first(size=4)").size == 4
    assert things.make("first").size == 1


def test_a_name_is_taken_once(things):
    with pytest.raises(TidegateError, match="thing 'first' is registered twice"):
        things("first")(type("Second", (Thing,), {}))


def test_unknown_names_offer_the_nearest(things):
    with pytest.raises(
        UnknownName, match="unknown thing 'frist'; did you mean 'first'\\? Known: first"
    ):
        things.find("frist")


def test_packages_add_names(things, monkeypatch):
    other = type("Other", (Thing,), {})
    groups = []

    def entry_points(group):
        groups.append(group)
        return [SimpleNamespace(name="other", value="pkg:Other", load=lambda: other)]

    monkeypatch.setattr(module, "entry_points", entry_points)
    assert things.names() == ["first", "other"]
    assert things.make("other(size=2)").size == 2
    assert things.find("other") is other
    assert groups == ["tidegate.thing"]  # once, however often it is needed


def test_a_package_that_cannot_be_loaded_is_named(things, monkeypatch):
    point = importlib.metadata.EntryPoint("other", "no_such_package:Other", "tidegate.thing")
    monkeypatch.setattr(module, "entry_points", lambda group: [point])
    with pytest.raises(
        TidegateError, match="thing 'other' of package no_such_package:Other cannot be loaded"
    ):
        things.find("first")


def test_an_unknown_name_can_come_from_a_worker_process():
    error = UnknownName("thing", "frist", ["first"])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# Files

MINE = """
from tidegate.policy import EvictionPolicy

class Mine(EvictionPolicy):
    def victim(self): return min(self.resident)
"""


@pytest.fixture
def mine(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(MINE)
    return file


def test_a_class_in_a_file(mine):
    cls = eviction.find(f"{mine}:Mine")
    assert issubclass(cls, EvictionPolicy)
    assert cls.name == "Mine"
    assert eviction.find(str(mine)) is cls
    assert "Mine" not in eviction.names()  # a file is not an installation


def test_two_files_of_one_name_are_two_files(mine, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "mine.py").write_text(MINE)
    assert eviction.find(f"{mine}:Mine") is not eviction.find(f"{other / 'mine.py'}:Mine")


def test_a_file_that_fails_can_be_put_right(mine):
    mine.write_text("1 / 0")
    with pytest.raises(TidegateError, match="ZeroDivisionError"):
        eviction.find(f"{mine}:Mine")
    mine.write_text(MINE)
    assert eviction.find(f"{mine}:Mine").name == "Mine"


def test_imported_classes_are_not_taken_for_the_file_s_own(mine):
    mine.write_text("from tidegate.policies.eviction.fifo import FIFO\n" + MINE)
    assert eviction.find(str(mine)).__name__ == "Mine"


def test_an_edited_file_is_loaded_anew(mine):
    old = eviction.find(f"{mine}:Mine")
    mine.write_text(MINE + "    depth = 7\n")
    new = eviction.find(f"{mine}:Mine")
    assert new.depth == 7
    assert not hasattr(old, "depth")  # it is still made of the old text


@pytest.mark.parametrize("name", ["mine.py:Mine:Mine", ":Mine.py", ".py", "mine.py:mine.py"])
def test_odd_ways_to_name_a_file(mine, monkeypatch, name):
    monkeypatch.chdir(mine.parent)
    with pytest.raises(TidegateError):
        eviction.find(name)


def test_only_the_module_of_the_name_is_imported(things, tmp_path):
    folder = tmp_path / "things_of_the_test"
    (folder / "other.py").write_text("raise RuntimeError('it is imported')")
    (folder / "second_one.py").write_text("")
    sys.modules["things_of_the_test.second_one"] = things("second-one")(type("S", (Thing,), {}))
    assert things.find("second-one").__name__ == "S"
    with pytest.raises(RuntimeError, match="it is imported"):
        things.find("third")
