"""A policy that is compiled decides what its class decides in Python: same victims, same books.

And what cannot be compiled says why; errors, Ctrl-C and checked runs work; the cache is right.
"""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import broken, refused, subset
from tidegate.errors import PolicyError
from tidegate.papers.observuvm.paper import grid_of
from tidegate.papers.observuvm.setup import GRID, SYSTEMS, Setup
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, prefetch
from tidegate.policy import PlacementPolicy, PrefetchPolicy
from tidegate.policy_compiler import cache
from tidegate.policy_compiler.source import digest
from tidegate.simulation import calling
from tidegate.simulation.calling import CompiledCaller
from tidegate.simulation.gpu import simulation as simulation_module
from traces import FLAT, PAGES, Given, Kernel, flat, machine, one_block, reads, simulation_of
from worlds import machines, observing, traces

IN_PYTHON = {  # what remains in Python, and why
    "hpe": "self.kind is a str",
    "mhpe": "deque",
    "leu-observed": "':='",
    "leu-at-fault": "':='",
    "pattern": "self._patterns is a Patterns",
    **dict.fromkeys(("glm", "object-lru", "prefetch-all", "rdm", "rlm"), "has no 'place'"),
    "host": "has no 'objects'",
    "explicit": "self.again is a set",
    **dict.fromkeys(
        ("greedy", "look-ahead", "offload", "pin-and-stream"), "self.held is a bytearray"
    ),
}
COMPILED = [name for name in eviction.names() if name not in IN_PYTHON]
PREFETCHERS = [name for name in prefetch.names() if name not in IN_PYTHON]
TOGETHER = ["fdp(every=1)+rgp(streak=1)", "rgp(streak=1)+early-adaptor(window=3)", "tree+rgp"]
TOURNAMENTS = [
    "lru+lfu+cp",
    "lrm+mru+lru",
    "lfu(bins=2)+cp(start_share=0.25)+lru",
    "tournament+fifo",
    "lrm+clock+lru-ideal",
    "lru-ideal+lru",
    "leu+random",
    "lru+hpe",  # hpe runs in Python within a compiled tournament
]


def options(cls: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Values for each option of a policy, where its text does not name other policies."""

    def values(option: Any) -> st.SearchStrategy[Any]:
        least, most = option.least or 0, option.most
        if option.choices:
            return st.sampled_from(option.choices)
        if isinstance(option.default, bool):
            return st.booleans()
        if isinstance(option.default, float):
            return st.floats(least, least + 1 if most is None else most)
        if option.default >= 4096:  # a size
            return st.sampled_from((4096, 16384, 65536, 1 << 21))
        return st.integers(least, least + 5 if most is None else min(most, least + 60))

    known = {n: o for n, o in cls.options().items() if o.choices or not isinstance(o.default, str)}
    return st.fixed_dictionaries({}, optional={n: values(o) for n, o in known.items()})


class Meddling:
    """Writes down who leaves; at each launch it sends one region away and fetches another, so that
    lists have holes.
    """

    memory: Any

    def start(self) -> None:
        self.evicted: list[int] = []

    def on_launch(self, launch: int) -> None:
        if self.memory.resident:
            self.memory.evict(sorted(self.memory.resident)[launch % len(self.memory.resident)])
        self.memory.prefetch(launch % self.memory.regions * self.memory.geometry.pages_per_region)

    def on_eviction(self, region: int) -> None:
        self.evicted.append(region)


class Meddler(Meddling, PlacementPolicy):
    """Where data live is decided by somebody who meddles."""


class MeddlingPrefetcher(Meddling, PrefetchPolicy):
    """So is what comes near early."""


def left_by(simulation: Any) -> tuple[Any, Any]:
    """What a run left behind: reports, and all arrays of memory."""
    policies = (simulation.eviction, simulation.prefetch, simulation.placement)
    arrays = simulation.memory._asdict().items()
    memory = {n: a.tolist() for n, a in arrays if n not in ("own", "requests")}
    return [policy.report() for policy in policies], memory


def both(
    trace: Any, on: Any, frames: int, policy: Any, ahead: Any = "none", where: Any = "", **how: Any
) -> list[Any]:
    """The compiled run and the run in Python: everything they left behind.

    Who leaves comes first. Policies are functions that make them, or names.
    """
    found = []
    for compiled in (True, False):
        meddler = MeddlingPrefetcher() if where else Meddler()
        ahead_of = make_prefetch(ahead) if isinstance(ahead, str) else ahead()
        simulation = simulation_of(
            trace,
            on,
            frames,
            eviction=policy if isinstance(policy, str) else policy(),
            prefetch=meddler if where else ahead_of,
            placement=(where if isinstance(where, str) else where()) if where else meddler,
            compiled=compiled,
            **how,
        )
        simulation.run()
        callers = [type(choice.caller) for choice in simulation._choices]
        mine = callers[2] if where else callers[0]
        assert (mine is CompiledCaller) is compiled
        found.append((meddler.evicted, *left_by(simulation)))
    return found


def test_which_policies_are_compiled():
    """All but those above; so every policy that once had a twin written by hand."""
    for registry in (eviction, prefetch, placement):
        for name in registry.names():
            given = {registry.family: name}
            simulation = simulation_of(flat(range(9)), machine(), 9, **given)
            which = ("eviction", "prefetch", "placement").index(registry.family)
            reason = simulation.reasons()[which]
            assert IN_PYTHON[name] in reason if name in IN_PYTHON else reason == "", name


@pytest.mark.parametrize("policy", COMPILED)
@settings(max_examples=40, derandomize=True)
@given(traces(), machines(), st.integers(1, 9), st.sampled_from(prefetch.names()), st.data())
def test_compiled_is_python(policy, trace, on, frames, ahead, data):
    cls = eviction.find(policy)
    chosen = data.draw(options(cls))
    compiled, python = both(trace, on, frames, lambda: cls(**chosen), ahead)
    assert compiled == python


OBSERVING = given(
    traces(),
    observing(),
    st.integers(1, 9),
    st.integers(1, 5),
    st.sampled_from((0, 0, 1, 3)),
    st.data(),
)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["lru", "lfu", "cp", "tournament"])
@settings(max_examples=40, derandomize=True)
@OBSERVING
def test_compiled_is_python_with_observation(policy, trace, on, frames, observed, samples, data):
    cls = eviction.find(policy)
    chosen = data.draw(options(cls))
    if policy == "tournament":
        chosen["policies"] = data.draw(st.sampled_from(TOURNAMENTS))
    ahead = data.draw(st.sampled_from([*PREFETCHERS, *TOGETHER]))
    how = {"observed": observed, "samples": samples}
    compiled, python = both(trace, on, frames, lambda: cls(**chosen), ahead, **how)
    assert compiled == python


@pytest.mark.slow
@pytest.mark.parametrize("ahead", [*PREFETCHERS, *TOGETHER])
@settings(max_examples=25, derandomize=True)
@OBSERVING
def test_compiled_prefetchers_are_python(ahead, trace, on, frames, observed, samples, data):
    policy = data.draw(st.sampled_from(["lrm", "lru", "tournament(patience=2)"]))
    make: Any = ahead
    if "+" not in ahead:
        chosen = data.draw(options(prefetch.find(ahead)))
        make = lambda: prefetch.find(ahead)(**chosen)  # noqa: E731
    compiled, python = both(trace, on, frames, policy, make, observed=observed, samples=samples)
    assert compiled == python


@settings(max_examples=40, derandomize=True)
@OBSERVING
def test_a_compiled_placement_is_python(trace, on, frames, observed, samples, data):
    policy = data.draw(st.sampled_from(["lrm", "lru"]))
    where = f"acbm(threshold={data.draw(st.sampled_from((1, 3, 256)))})"
    compiled, python = both(
        trace, on, frames, policy, where=where, observed=observed, samples=samples
    )
    assert compiled == python


def zipf_blocks(count: int, regions: int) -> list[Any]:
    rng = np.random.default_rng(3)
    return [reads(rng.zipf(1.2, 12) % (regions * PAGES)) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("policy", [*COMPILED, *(f"tournament(policies={p})" for p in TOURNAMENTS)])
def test_compiled_is_python_in_long_runs(policy):
    """Long enough for every list to turn over many times."""
    blocks = zipf_blocks(400, 80)
    trace = Given([Kernel(blocks[:250]), Kernel(blocks[250:], width=2)], [80 * PAGES])
    for slots, frames in ((1, 37), (8, 37), (64, 5)):
        compiled, python = both(trace, machine(slots), frames, policy, "tree")
        assert len(compiled[0]) > 400
        assert compiled == python


@pytest.mark.parametrize(
    "policy", ["lru", "lfu", "cp", "tournament", "tournament(patience=9, margin=1)"]
)
@pytest.mark.parametrize("ahead", ["fdp(every=2)", "rgp(streak=1)", "fdp(every=2)+rgp"])
def test_compiled_prefetchers_are_python_in_long_runs(policy, ahead):
    """Streams through two objects, again and again, and a third that is used all over: regions
    observed, verdicts given.
    """
    rng = np.random.default_rng(5)
    blocks = []
    for sweep in range(6):
        for at in range(0, 40 * PAGES, 4):
            blocks.append(
                reads(
                    [
                        at,
                        *range(40 * PAGES + at, 40 * PAGES + at + 1 + sweep),
                        80 * PAGES + rng.integers(9 * PAGES),
                    ]
                )
            )
    trace = Given(
        [Kernel(blocks[: len(blocks) // 2]), Kernel(blocks[len(blocks) // 2 :])],
        [40 * PAGES, 40 * PAGES, 9 * PAGES],
    )
    compiled, python = both(trace, machine(4, batch_faults=8), 30, policy, ahead, observed=12)
    assert compiled == python
    names = np.dtype(simulation_of(trace, machine(), 30).books.dtype).names
    books = dict(zip(names, compiled[2]["books"][0], strict=True))
    assert books["evictions"] > 100
    assert books["notifications"] > 20
    assert books["pages_prefetched"] > 100


@pytest.mark.slow
@pytest.mark.parametrize("policy", COMPILED)
def test_compiled_is_python_when_regions_come_and_go_without_pressure(policy):
    """No victim is needed, so nothing tidies up what the regions sent away leave behind; then
    pressure sets in.
    """
    calm = [Kernel([reads([0, PAGES, 2 * PAGES])])] * 60
    busy = [Kernel([reads(range(0, 6 * PAGES, PAGES))])] * 3
    compiled, python = both(Given([*calm, *busy, *calm, *busy], [6 * PAGES]), machine(), 4, policy)
    assert compiled == python


@pytest.mark.parametrize("policy", COMPILED)
def test_compiled_is_python_with_one_region_and_one_frame(policy):
    for trace in (flat([0, 0, 0]), flat([0, 1] * 20), one_block(reads([2] * 3), [3], FLAT)):
        compiled, python = both(trace, machine(), 1, policy)
        assert compiled == python


@pytest.mark.slow
@pytest.mark.parametrize("application", ["GMV", "2DC", "BLK", "HEL", "SRK"])
@pytest.mark.parametrize("system", [s for s in SYSTEMS if s != "uvm"])
def test_applications_come_out_the_same(application, system):
    """The whole answer: every count, every part of time, the timeline, what the policies report."""
    ask = grid_of(Setup(scale=1 / 64))[application, system, GRID]
    compiled, python = (
        replace(ask, compiled=compiled).run(cache=False) for compiled in (True, False)
    )
    assert compiled.counts["evictions"] > 20
    assert compiled.to_json() == python.to_json()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "ahead",
    ["rgp(streak=1, ahead=70000, taken=at once)", "fdp+rgp(streak=1, ahead=70000, taken=at once)"],
)
def test_asking_for_too_much_ends_the_run_with_one_clear_line(compiled, ahead):
    trace = one_block(reads([0, 1, 2]), [70_000], FLAT)
    simulation = simulation_of(
        trace, machine(), 10, prefetch=make_prefetch(ahead), compiled=compiled
    )
    name = simulation.prefetch.name
    with pytest.raises(PolicyError, match=re.escape(f"policy '{name}' raised in on_fault(1): ")):
        simulation.run()


# Classes of a user's


@pytest.fixture
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run is long enough to be compiled."""
    monkeypatch.setattr(calling, "LONG_RUN", -1)


TRACE = Given([Kernel(zipf_blocks(60, 40)), Kernel(zipf_blocks(60, 40))], [25 * PAGES, 15 * PAGES])


@pytest.mark.parametrize("policy", [subset.Expressions, subset.Structures, subset.Touches])
def test_the_subset_is_compiled_and_is_python(long, policy):
    for frames in (3, 13):
        compiled, python = both(TRACE, machine(4), frames, policy, "fdp(every=1)", observed=6)
        assert compiled == python


def test_the_subset_of_prefetchers_is_compiled_and_is_python(long):
    compiled, python = both(TRACE, machine(4), 13, "lru", subset.Verbs, observed=6)
    assert compiled == python


REFUSED = [c for c in vars(refused).values() if isinstance(c, type) and "says" in vars(c)]


@pytest.mark.parametrize("policy", REFUSED, ids=lambda cls: cls.__name__)
def test_what_cannot_be_compiled_says_why_with_its_line(long, policy):
    lines, first = inspect.getsourcelines(policy)
    (line,) = [first + i for i, text in enumerate(lines) if text.endswith("# here\n")]
    simulation = simulation_of(TRACE, machine(4), 13, eviction=policy())
    assert simulation.reasons()[0].startswith(f"line {line}: {policy.says}")


def test_a_long_run_in_python_has_a_note(long):
    simulation = simulation_of(TRACE, machine(4), 13, eviction=refused.PlainSet())
    simulation.run()
    (note,) = simulation.notes
    assert note.startswith("policy 'PlainSet' runs in Python: line ")
    python = simulation_of(TRACE, machine(4), 13, eviction=refused.PlainSet(), compiled=False)
    python.run()
    assert python.notes == []
    assert left_by(python) == left_by(simulation)


def test_short_runs_of_a_users_class_stay_in_python(monkeypatch, tmp_path):
    def forbidden(*args: Any) -> None:
        raise AssertionError("compiled")

    class Own(subset.Base):
        def victim(self):
            return self.order.tail if len(self.order) > 900 else self.order.head

    monkeypatch.setattr(cache, "_compile", forbidden)
    simulation = simulation_of(TRACE, machine(4), 13, eviction=Own())
    simulation.run()
    assert not isinstance(simulation._choices[0].caller, CompiledCaller)


@pytest.mark.slow
def test_a_run_that_turns_out_to_be_long_goes_on_compiled(monkeypatch):
    python = simulation_of(TRACE, machine(4), 13, eviction=subset.Structures(), compiled=False)
    python.run()
    switched = simulation_of(TRACE, machine(4), 13, eviction=subset.Structures())
    monkeypatch.setattr(calling, "LONG_RUN", switched_at := python._calls() // 4)
    monkeypatch.setattr(simulation_module, "_BUDGET", 100)
    kinds = []
    monkeypatch.setattr(cache, "_load", lambda file: None)
    monkeypatch.setattr(cache, "_known", {})
    switched.run(lambda touches: kinds.append(type(switched._choices[0].caller)))
    assert switched_at > 50
    assert kinds[0] is not CompiledCaller
    assert kinds[-1] is CompiledCaller
    assert left_by(switched) == left_by(python)


class NeverTheHead(eviction.find("lrm")):
    """A class that inherits from a shipped one and decides otherwise."""

    def victim(self) -> int:
        return self.order.tail


@pytest.mark.parametrize("compiled", [True, False])
def test_a_subclass_decides_for_itself(long, compiled):
    trace = flat(list(range(4)) * 3)
    own, base = (
        simulation_of(trace, machine(), 2, eviction=policy, compiled=compiled)
        for policy in (NeverTheHead(), "lrm")
    )
    own.run()
    base.run()
    assert base.books["faults"] == 12
    assert own.books["faults"] < 12


# Errors


FAILING = (
    broken.Raises,
    broken.WrongRegion,
    broken.WrongIndex,
    broken.RemovesTwice,
    broken.DividesByZero,
)


def failure(policy: Any, **how: Any) -> str:
    with pytest.raises(PolicyError) as error:
        simulation_of(TRACE, machine(4), 13, eviction=policy(), **how).run()
    text = str(error.value)
    assert "\n" not in text
    return text


def place(policy: Any) -> str:
    lines, first = inspect.getsourcelines(policy)
    (line,) = [first + i for i, text in enumerate(lines) if text.endswith("# here\n")]
    return f"(broken.py, line {line})"


@pytest.mark.parametrize("policy", FAILING)
def test_a_compiled_policy_that_fails_gives_pythons_error_with_its_line(long, policy):
    text = failure(policy)
    assert policy.says in text
    assert text.endswith(place(policy))


def test_a_compiled_policy_that_answers_nothing(long):
    assert failure(broken.AnswersNothing) == "policy 'AnswersNothing' " + broken.AnswersNothing.says


@pytest.mark.parametrize(
    "policy", [*FAILING, broken.Overflows, broken.OverflowsInPlace, broken.ChangesWhileIterating]
)
def test_a_checked_run_finds_it_with_its_line(policy):
    text = failure(policy, checked=True)
    assert policy.says in text
    assert text.endswith(place(policy))


def test_the_environment_asks_for_checked_runs(monkeypatch):
    monkeypatch.setenv("TIDEGATE_CHECKED", "1")
    assert broken.Overflows.says in failure(broken.Overflows)
    monkeypatch.setenv("TIDEGATE_CHECKED", "")
    simulation_of(TRACE, machine(4), 13, eviction=broken.Overflows()).run()


@pytest.mark.parametrize("policy", [*COMPILED, subset.Expressions, subset.Structures])
def test_a_checked_run_changes_nothing(policy):
    made = [policy if isinstance(policy, str) else policy() for _ in range(2)]
    runs = [
        simulation_of(TRACE, machine(4), 13, eviction=p, prefetch="fdp", compiled=False, checked=c)
        for p, c in zip(made, (False, True), strict=True)
    ]
    for simulation in runs:
        simulation.run()
    assert left_by(runs[0]) == left_by(runs[1])
    assert type(runs[0].eviction) is type(runs[1].eviction)


class Endless(subset.Base):
    """It never answers."""

    def start(self):
        self.rounds = 0

    def victim(self):
        while self.rounds >= 0:
            self.rounds = (self.rounds + 1) % 1000
        return self.order.head


def test_an_endless_loop_can_be_interrupted(long):
    simulation_of(TRACE, machine(4), 13, eviction=Endless()).reasons()  # is compiled
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with (
        pytest.raises(KeyboardInterrupt),
        subprocess.Popen(["/bin/sh", "-c", f"sleep 0.5; kill -INT {os.getpid()}"]),
    ):
        simulation_of(TRACE, machine(4), 13, eviction=Endless()).run()


# The cache


def test_compiled_code_is_loaded_from_the_cache(long, monkeypatch):
    compiled = simulation_of(TRACE, machine(4), 13, eviction=subset.Structures())
    compiled.run()
    assert simulation_of(TRACE, machine(4), 13, eviction=refused.PlainSet()).reasons()[0]
    monkeypatch.setattr(cache, "_known", {})  # as in another process

    def forbidden(*args: Any) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(cache, "_compile", forbidden)
    for bins in (3, 7):  # options are data
        again = simulation_of(TRACE, machine(4), 13, eviction=subset.Structures(bins=bins))
        again.run()
        assert isinstance(again._choices[0].caller, CompiledCaller)
        assert (left_by(again) == left_by(compiled)) is (bins == 3)
    simulation = simulation_of(TRACE, machine(4), 13, eviction=refused.PlainSet())
    assert "a set" in simulation.reasons()[0]  # refusals are kept too


def test_a_damaged_file_is_written_anew(long, monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_folder", lambda: tmp_path / "kept")
    for _ in range(2):
        monkeypatch.setattr(cache, "_known", {})
        simulation = simulation_of(TRACE, machine(4), 13, eviction=subset.Base())
        assert simulation.reasons()[0] == ""
        (file,) = [f for f in (tmp_path / "kept").iterdir() if f.name.startswith("Base-")]
        assert len(file.read_bytes()) > 1000
        file.write_bytes(b"no code")


def test_the_digest_covers_all_that_a_class_depends_on(monkeypatch):
    def around(number: int) -> type:
        class Own(subset.Base):
            def victim(self):
                return self.order.head + 0 * number

        return Own

    before = digest(subset.Expressions)
    assert before == digest(subset.Expressions)
    monkeypatch.setattr(subset, "LIMIT", 4)
    changed = [digest(subset.Expressions)]
    monkeypatch.setattr(subset, "twice", lambda number: 3 * number)
    changed.append(digest(subset.Expressions))
    monkeypatch.setattr(subset.Base, "on_eviction", lambda self, region: None)
    changed.append(digest(subset.Expressions))
    monkeypatch.setattr(subset.Expressions, "ahead", 3)
    changed.append(digest(subset.Expressions))
    assert len({before, *changed}) == 5
    assert digest(around(1)) == digest(around(1)) != digest(around(2))


def test_a_constant_that_changes_is_compiled_anew(long, monkeypatch):
    def left(limit: int) -> Any:
        monkeypatch.setattr(subset, "LIMIT", limit)
        compiled, python = both(TRACE, machine(4), 13, subset.Constant)
        assert compiled == python
        return compiled

    assert left(1) != left(7)


# The examples that people copy


ROOT = Path(__file__).parents[2]


def test_the_example_is_compiled(long):
    check_file(ROOT / "examples" / "lagged.py", "Lagged", "eviction")


def test_the_policies_of_the_docs_are_compiled(long, tmp_path):
    pages = ("how-to/policy.md", "compiled-policies.md")
    text = "".join((ROOT / "docs" / page).read_text() for page in pages)
    found = []
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for name, family in re.findall(r"^class (\w+)\((Eviction|Prefetch)Policy\)", block, re.M):
            (tmp_path / f"{name}.py").write_text(block)
            check_file(tmp_path / f"{name}.py", name, family.lower())
            found.append(name)
    assert found == ["Oldest", "Seldom", "NextRegion"]


def check_file(file: Path, name: str, family: str) -> None:
    """The class is compiled, and is what it is in Python."""
    found = []
    for compiled in (True, False):
        given = {family: f"{file}:{name}"}
        simulation = simulation_of(TRACE, machine(4), 13, compiled=compiled, **given)
        simulation.run()
        which = ("eviction", "prefetch").index(family)
        assert isinstance(simulation._choices[which].caller, CompiledCaller) is compiled
        found.append(left_by(simulation))
    assert found[0] == found[1]
