"""A stored run is never given for code, or data, that has changed since.

Each place where a policy of a user's can hold a choice is filled in two ways: evict the oldest or
the newest. A loop of 6 pages through 4 frames faults 18 times under the first and 12 under the
second, so the result shows which of them ran.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidegate
from tidegate import RunSpec
from tidegate.errors import TidegateError
from tidegate.experiments import Run, store
from tidegate.policies.eviction.fifo import FIFO
from tidegate.policies.registries import eviction, placement, prefetch, tiering
from tidegate.policy import EvictionPolicy
from tidegate.policy_compiler.source import digest
from tidegate.user_code.fingerprint import fingerprint
from tidegate.workloads import workloads
from traces import flat, machine

FAULTS = {"oldest": 18, "newest": 12}
NUMBERS = count()

BODY = """
    def on_fault(self, region):
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region):
        self.order.remove(region)
"""
CLASS = f"""
from tidegate.policy import EvictionPolicy

class Mine(EvictionPolicy):
    keep = True
{BODY}
    def victim(self):
        return self.order.tail if CHOICE == "newest" else self.order.head
"""


@dataclass(frozen=True)
class Place:
    """Where the choice is: the text of ``mine.py`` and of files beside it, with VALUE for it.

    ``change`` puts another value there in memory, given the module and the value.
    """

    text: str
    change: Callable[[ModuleType, str], None] | None = None
    beside: tuple[tuple[str, str], ...] = ()


def made(
    choice: str, *before: str, beside: dict[str, str] | None = None, change: Any = None
) -> Place:
    """Return a place: CLASS with ``choice`` in it, behind other lines."""
    text = "\n".join(before) + CLASS.replace("CHOICE", choice)
    return Place(text, change, tuple((beside or {}).items()))


def neighbour(module: ModuleType) -> Any:
    """Return the module HELPER as ``mine`` imported it."""
    return next(m for m in vars(module).values() if isinstance(m, ModuleType) and m.VALUE_IS_HERE)


HELPER = "VALUE_IS_HERE = True\n"
PLACES = {
    "constant": made('"VALUE"'),
    "global": made("K", 'K = "VALUE"', change=lambda m, v: setattr(m, "K", v)),
    "dictionary": made("K['a']", 'K = {"a": "VALUE"}', change=lambda m, v: m.K.update(a=v)),
    "list": made("K[0]", 'K = ["VALUE"]', change=lambda m, v: m.K.__setitem__(0, v)),
    "set": made('("newest" if "newest" in K else "oldest")', 'K = {1, "VALUE"}'),
    "array": made(
        '("newest" if K[1] else "oldest")',
        'import numpy as np\nK = np.array([7, "VALUE" == "newest"])',
        change=lambda m, v: m.K.__setitem__(1, v == "newest"),
    ),
    "long array": made(
        '("newest" if K[5000] else "oldest")',
        'import numpy as np\nK = np.zeros(10_000)\nK[5000] = "VALUE" == "newest"',
        change=lambda m, v: m.K.__setitem__(5000, v == "newest"),
    ),
    "function": made("k()", 'def k():\n    return "VALUE"'),
    "default": made(
        "k()",
        'def k(value="VALUE"):\n    return value',
        change=lambda m, v: setattr(m.k, "__defaults__", (v,)),
    ),
    "keyword default": made(
        "k()",
        'def k(*, value="VALUE"):\n    return value',
        change=lambda m, v: setattr(m.k, "__kwdefaults__", {"value": v}),
    ),
    "closure": made(
        "k()",
        "def make(value):\n    def k():\n        return value\n    return k",
        'k = make("VALUE")',
        change=lambda m, v: setattr(m, "k", m.make(v)),
    ),
    "partial": made(
        "k()",
        'from functools import partial\nk = partial(str, "VALUE")',
        change=lambda m, v: setattr(m, "k", m.partial(str, v)),
    ),
    "bound method": made("k()", 'k = ["VALUE"].copy', "k = (lambda f: lambda: f()[0])(k)"),
    "lambda in a table": made("T['k']()", 'T = {"k": lambda: "VALUE"}'),
    "cached function": made(
        "k()", 'import functools\n@functools.cache\ndef k():\n    return "VALUE"'
    ),
    "wrapped function": made(
        "k()",
        "import functools\ndef same(f):\n    @functools.wraps(f)\n    def g():\n        return f()",
        '    return g\n@same\ndef k():\n    return "VALUE"',
    ),
    "nested code": made('next(k for k in ["VALUE"])'),
    "another class": made(
        "Other.k",
        'class Other:\n    k = "VALUE"',
        change=lambda m, v: setattr(m.Other, "k", v),
    ),
    "an object": made(
        "OTHER.k",
        'class Other:\n    def __init__(self):\n        self.k = "VALUE"\nOTHER = Other()',
        change=lambda m, v: setattr(m.OTHER, "k", v),
    ),
    "an object with slots": made(
        "OTHER.k",
        'class Other:\n    __slots__ = ("k",)\nOTHER = Other()\nOTHER.k = "VALUE"',
        change=lambda m, v: setattr(m.OTHER, "k", v),
    ),
    "a subclass of str": made("K", 'class Word(str): pass\nK = Word("VALUE")'),
    "an enumeration": made("K.a.value", 'import enum\nclass K(enum.Enum):\n    a = "VALUE"'),
    "a path": made(
        "K.name",
        'from pathlib import Path\nK = Path("x/VALUE")',
        change=lambda m, v: setattr(m, "K", m.Path(v)),
    ),
    "a random generator": made(
        '("newest" if G.bit_generator.state["state"]["state"] == N else "oldest")',
        "import numpy as np\n",
        'G = np.random.default_rng(0 if "VALUE" == "newest" else 1)',
        'N = np.random.default_rng(0).bit_generator.state["state"]["state"]',
    ),
    "neighbour's global": made(
        "helper.K",
        "import helper",
        beside={"helper.py": HELPER + 'K = "VALUE"'},
        change=lambda m, v: setattr(neighbour(m), "K", v),
    ),
    "neighbour's function": made(
        "helper.k()", "import helper", beside={"helper.py": 'def k():\n    return "VALUE"'}
    ),
    "name from a neighbour": made(
        "K",
        "from helper import K",
        beside={"helper.py": 'K = "VALUE"'},
        change=lambda m, v: setattr(m, "K", v),
    ),
    "function from a neighbour": made(
        "k()",
        "from helper import k",
        beside={"helper.py": 'K = "VALUE"\ndef k():\n    return K'},
        change=lambda m, v: m.k.__globals__.update(K=v),
    ),
    "neighbour's neighbour": made(
        "helper.k()",
        "import helper",
        beside={
            "helper.py": "import further\ndef k():\n    return further.K",
            "further.py": 'K = "VALUE"',
        },
    ),
    "package beside it": made(
        "pack.part.k()",
        "import pack.part",
        beside={
            "pack/__init__.py": "",
            "pack/part.py": "from . import other\ndef k():\n    return other.K",
            "pack/other.py": 'K = "VALUE"',
        },
    ),
    "import within a function": made(
        "k()",
        "def k():\n    import helper\n    return helper.K",
        beside={"helper.py": 'K = "VALUE"'},
    ),
    "base class in another file": Place(
        "from base import Base\nclass Mine(Base):\n    keep = True\n",
        lambda m, v: setattr(m.Mine.__base__, "choice", v),
        (("base.py", CLASS.replace("Mine", "Base").replace("CHOICE", "self.choice")
          + '\n    choice = "VALUE"\n'),),
    ),
    "class attribute": Place(
        CLASS.replace("CHOICE", "self.choice") + '\n    choice = "VALUE"\n',
        lambda m, v: setattr(m.Mine, "choice", v),
    ),
    "table of the class": Place(
        CLASS.replace("CHOICE", "self.table[0]") + '\n    table = ["VALUE"]\n',
        lambda m, v: m.Mine.table.__setitem__(0, v),
    ),
    "property": Place(
        CLASS.replace("CHOICE", "self.k") + '\n    @property\n    def k(self): return "VALUE"\n',
        lambda m, v: setattr(m.Mine, "k", property(lambda self: v)),
    ),
    "static method": Place(
        CLASS.replace("CHOICE", "self.k()") + '\n    @staticmethod\n    def k(): return "VALUE"\n'
    ),
    "class method": Place(
        CLASS.replace("CHOICE", "self.k()") + '\n    @classmethod\n    def k(cls): return "VALUE"\n'
    ),
    "method": Place(
        CLASS.replace("CHOICE", '"VALUE"'),
        lambda m, v: setattr(m.Mine, "victim", _victim(v)),
    ),
    "option's default": Place(
        "from tidegate.policy import Option\n"
        + CLASS.replace("CHOICE", "self.k") + '\n    k = Option("VALUE", "which")\n'
    ),
    "attribute of the object": Place(
        CLASS.replace("CHOICE", "self.k")
        + "\n    def __init__(self, **o):\n        super().__init__(**o)\n"
        + '        self.k = "VALUE"\n'
    ),
    "data file": Place(
        CLASS.replace("CHOICE", "self.k")
        + "\n    depends = [DATA]\n    def start(self):\n        self.k = open(DATA).read()\n",
        None,
        (("data.txt", "VALUE"),),
    ),
}  # fmt: skip


def _victim(choice: str) -> Callable[[Any], int]:
    return lambda self: self.order.tail if choice == "newest" else self.order.head


@pytest.fixture(autouse=True)
def _own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "store"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the user's, from which Python imports."""
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.syspath_prepend(str(own))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield own
    for name in set(sys.modules) - before:
        if str(own) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def write(place: Place, folder: Path, value: str, name: str = "mine", keep: bool = True) -> Path:
    """Write the files of a place."""
    for beside, text in place.beside:
        (folder / beside).parent.mkdir(exist_ok=True)
        (folder / beside).write_text(
            text.replace("VALUE", value)
            if "IS_HERE" not in text
            else text.replace('"VALUE"', f'"{value}"')
        )
    text = place.text.replace("VALUE", value).replace("DATA", repr(str(folder / "data.txt")))
    file = folder / f"{name}.py"
    file.write_text(text if keep else text.replace("keep = True", "keep = False"))
    return file


def run(policy: Any, cache: bool = True) -> Run:
    return RunSpec(
        flat(list(range(6)) * 3), machine=machine(), near=4 * 4096, eviction=policy, prefetch="none"
    ).run(cache)


def faults(policy: Any, cache: bool = True) -> int:
    return run(policy, cache).counts["faults"]


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "not kept"])
@pytest.mark.parametrize("name", PLACES)
def test_edited_files_are_run_anew(folder, name, keep):
    for value in ("oldest", "newest", "oldest"):
        file = write(PLACES[name], folder, value, keep=keep)
        assert faults(str(file)) == FAULTS[value]
        assert faults(str(file)) == FAULTS[value]  # perhaps from the store


@pytest.mark.parametrize("name", [n for n, place in PLACES.items() if place.change])
def test_what_changes_in_memory_is_run_anew(folder, name):
    write(PLACES[name], folder, "oldest")
    mine = importlib.import_module("mine")
    assert faults(mine.Mine) == FAULTS["oldest"]
    assert run(mine.Mine).from_store
    for value in ("newest", "oldest"):
        PLACES[name].change(mine, value)
        assert faults(mine.Mine) == FAULTS[value]


@pytest.mark.parametrize("name", PLACES)
def test_a_file_edited_after_its_import_is_stored_as_what_ran(folder, name):
    """The class in memory is the old one; its run must not be found under the new text."""
    write(PLACES[name], folder, "oldest")
    mine = importlib.import_module("mine")
    if name != "import within a function":  # which imports the new text
        file = write(PLACES[name], folder, "newest")
        now = "newest" if name == "data file" else "oldest"
        assert faults(mine.Mine) == FAULTS[now]
        assert faults(str(file)) == FAULTS["newest"]


@pytest.mark.parametrize(
    "name", sorted(set(PLACES) - {"import within a function", "attribute of the object"})
)
def test_what_is_kept_is_found_again(folder, name):
    file = write(PLACES[name], folder, "newest")
    first = run(str(file))
    again = run(str(file))
    assert (first.from_store, again.from_store) == (False, True)
    assert again == first


@pytest.mark.slow
def test_a_kept_run_is_found_by_another_process(folder):
    names = ["neighbour's neighbour", "set", "enumeration", "closure", "wrapped function"]
    places = [PLACES.get(n, PLACES["an enumeration"]) for n in names]
    files = [write(place, folder, "newest", f"mine{n}") for n, place in enumerate(places)]
    keys = [run(str(file)).key for file in files]
    script = (
        "import sys, tidegate\nsys.path.insert(0, sys.argv[1])\n"
        "from test_stale import run\n"
        "for file in sys.argv[2:]:\n    r = run(file)\n    print(r.key, r.from_store)\n"
    )
    tests = Path(__file__).parent
    env = os.environ | {
        "PYTHONHASHSEED": "7",
        "PYTHONPATH": os.pathsep.join(
            [str(tests.parent), str(tests), os.environ.get("PYTHONPATH", "")]
        ),
    }
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tests), *map(str, files)],
        capture_output=True,
        text=True,
        env=env,
        timeout=120,
    )
    assert ran.stdout.split("\n")[:-1] == [f"{key} True" for key in keys], ran.stderr


# What cannot be known


def test_a_subclass_declares_for_itself(folder):
    file = write(PLACES["global"], folder, "newest")
    file.write_text(file.read_text() + "\nclass Sub(Mine):\n    pass\n")
    assert not any(run(f"{file}:Sub").from_store for _ in range(2))


def test_what_cannot_be_hashed_is_not_stored_and_said(folder):
    file = write(made("K", 'import threading\nL = threading.Lock()\nK = "VALUE"'), folder, "newest")
    text = file.read_text().replace("def victim(self):", "def victim(self):\n        L.locked()")
    file.write_text(text)
    runs = [run(str(file)) for _ in range(2)]
    assert not any(r.from_store for r in runs)
    (note,) = runs[0].notes
    assert note.startswith("the run is not stored")
    assert note.endswith("keep = True: lock cannot be hashed")


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("keep = 1", "Mine: keep must be True or False, got 1"),
        ('depends = "a.csv"', "depends must be file names"),
        ("depends = [1]", "depends must be file names"),
        ('depends = ["missing.csv"]', "missing.csv, which cannot be read: No such file"),
        ('depends = ["."]', "cannot be read: Is a directory"),
    ],
)
def test_wrong_declarations_are_refused(folder, declared, said):
    file = folder / "mine.py"
    file.write_text(CLASS.replace("CHOICE", '"oldest"') + f"\n    {declared}\n")
    with pytest.raises(TidegateError, match=said):
        run(str(file))


def test_a_data_file_that_is_written_during_the_run_is_not_trusted(folder):
    file = write(PLACES["data file"], folder, "newest")
    data = folder / "data.txt"
    file.write_text(
        file.read_text()
        + f'\n    def finished(self):\n        open({str(data)!r}, "w").write("oldest")\n'
    )
    assert faults(str(file)) == FAULTS["newest"]
    data.write_text("newest")
    assert not run(str(file)).from_store


# Objects, parts, workloads, machines and shipped classes


class Given(EvictionPolicy):
    """A policy with an attribute that is not an option."""

    keep = True

    def __init__(self, choice: str):
        super().__init__()
        self.choice = choice

    def on_fault(self, region: int) -> None:
        if region not in self.order:
            self.order.move_to_tail(region)

    def on_eviction(self, region: int) -> None:
        self.order.remove(region)

    def victim(self) -> int:
        return self.order.tail if self.choice == "newest" else self.order.head


def test_objects_are_named_by_their_attributes():
    for value in ("oldest", "newest", "oldest"):
        assert faults(Given(value)) == FAULTS[value]
    assert run(Given("newest")).from_store


def test_a_patched_shipped_class_is_not_the_shipped_one(monkeypatch):
    assert faults("fifo") == 18
    assert run("fifo").from_store
    monkeypatch.setattr(FIFO, "victim", _victim("newest"))
    assert not run("fifo").from_store
    assert faults("fifo") == run("fifo", cache=False).counts["faults"] == 12


def test_parts_of_a_shipped_policy_are_the_user_s(folder):
    """Of ``mine.py:A+tree``, the class Together is shipped and its first part is not."""
    text = "from tidegate.policy import PrefetchPolicy\nclass A(PrefetchPolicy):\n    keep = KEEP\n"
    text += "    def start(self): self.memory.set_prefetch_threshold(VALUE)\n"
    for keep in (True, False):
        seen = []
        for value in (100, 0):
            file = folder / "mine.py"
            file.write_text(text.replace("KEEP", str(keep)).replace("VALUE", str(value)))
            spec = RunSpec("cyclic(bytes=8MiB)", near="4MiB", prefetch=f"{file}:A+tree")
            seen.append([spec.run().from_store, spec.run().from_store])
        assert seen == [[False, keep], [False, keep]]


ROWS = """
from tidegate.workload import Launch, Workload, blocks_of

class Rows(Workload):
    keep = KEEP
    depends = (DATA,)

    def sizes(self):
        return {"array": 64 << 20}

    def launches(self, space):
        a = space["array"]
        rows = [int(line) for line in open(DATA)]
        pages = [a.first_page + row % a.pages for row in rows]
        yield Launch("rows", [blocks_of(16, pages, bytes=64)])
"""


@pytest.mark.parametrize("keep", [True, False])
def test_a_workload_s_data_file(folder, keep):
    """As found: 20,000 touches were reported after the file was cut to 100 rows."""
    data, file = folder / "rows.csv", folder / "rows.py"
    file.write_text(ROWS.replace("DATA", repr(str(data))).replace("KEEP", str(keep)))
    for rows in (20_000, 100):
        data.write_text("\n".join(map(str, range(rows))))
        runs = [tidegate.run(str(file), near="32MiB") for _ in range(2)]
        assert [r.counts["touches"] for r in runs] == [rows, rows]
        assert [r.from_store for r in runs] == [False, keep]


def test_a_machine_of_a_user_s_class(folder):
    text = (
        "from dataclasses import fields\nfrom tidegate import Machine, load_machine\n"
        "class Mine(Machine):\n    pass\n"
        "m = load_machine('rtx3090-pcie4')\n"
        "mine = Mine(**{f.name: getattr(m, f.name) for f in fields(m)})\n"
    )
    (folder / "mine.py").write_text(text)
    mine = importlib.import_module("mine").mine
    runs = [tidegate.run("cyclic(bytes=8MiB)", near="4MiB", machine=mine) for _ in range(2)]
    assert not runs[1].from_store


def test_checked_runs_are_never_from_the_store(monkeypatch):
    run("fifo")
    monkeypatch.setenv("TIDEGATE_CHECKED", "1")
    assert not run("fifo").from_store


# The fingerprint


@pytest.mark.parametrize("family", [eviction, prefetch, placement, tiering, workloads])
def test_shipped_classes_have_a_fingerprint_that_does_not_change(family):
    for name in family.names():
        try:
            one, other = family.make(name), family.make(name)
        except TidegateError:  # it needs options
            continue
        found = fingerprint(one)
        assert found == fingerprint(other), name
        assert not found.local, name
        assert not found.unknown, name


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner)
    | st.dictionaries(st.text(), inner, max_size=4) | st.frozensets(st.text(), max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(VALUES, VALUES)
@settings(max_examples=200)
def test_different_values_have_different_fingerprints(a, b):
    assert fingerprint(lambda: a).digest != fingerprint(lambda: b).digest or _equal(a, b)


def _equal(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_equal(a[k], b[k]) for k in a)
    return bool(a == b) if isinstance(a, frozenset) else repr(a) == repr(b)


def test_things_that_point_at_each_other_have_a_fingerprint():
    a: list[Any] = [1]
    b: list[Any] = [a]
    a.append(b)
    assert fingerprint(lambda: a).digest == fingerprint(lambda: a).digest


def test_compiled_code_is_named_by_the_modules_it_uses(folder):
    """Numba takes ``helper.K`` as a constant."""
    file = write(PLACES["neighbour's global"], folder, "oldest")
    before = digest(eviction.find(str(file)))
    write(PLACES["neighbour's global"], folder, "newest")
    assert digest(eviction.find(str(file))) != before


# The code of the package


@pytest.mark.slow
def test_rooms_that_are_apart_take_no_part_in_a_run(monkeypatch):
    monkeypatch.delenv("TIDEGATE_CACHE")
    script = (
        "import sys\nfrom tidegate import RunSpec\n"
        "RunSpec('cyclic(bytes=8MiB)', near='4MiB').prepare()\n"
        "RunSpec('cyclic(bytes=8MiB)', near='1MiB', tiering='bam').prepare()\n"
        "print(*(m for m in sys.modules if m.startswith('tidegate.')))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    used = {module.split(".")[1] for module in ran.stdout.split()}
    # these are imported, and only end processes
    ending = {"interrupts", "worker_process"}
    apart = {room.removesuffix(".py") for room in store.NOT_HASHED} - ending
    assert "simulation" in used, ran.stderr
    assert not used & apart
