"""The proof: what a policy answered in a simulated run, the kernel answers too."""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidegate.driver.emit import ROUNDS, write_core
from tidegate.driver.kernel import Batch, Loaded, compile_bpf, has_dummy_ops, missing
from tidegate.driver.tape import FIRST_SHOWN, Tape, taping
from tidegate.errors import PolicyError, TidegateError
from tidegate.experiments import RunSpec
from tidegate.policies.interface.events import EVENT_NAMES
from tidegate.policies.interface.policy import Policy, label

MOST_ROWS = 1 << 18  # check.h
_HOOK_ROWS = 4000  # rows that are played as single calls of a hook
_TIMED_PLAYS = 3
_REQUEST = np.dtype([(name, np.int64) for name in ("verb", "a", "b", "c")])


@dataclass(frozen=True)
class Checked:
    """What came of playing a tape to the kernel.

    ``answers`` and ``requests`` were compared, ``wrong`` differed; ``first_wrong`` says where.
    """

    policy: str
    workload: str
    calls: int
    answers: int
    requests: int
    wrong: int
    first_wrong: str
    instructions: int
    ns_per_call: float
    longest_ns: int
    longest_event: str
    hook_calls: int  # of them by struct_ops
    rounds: int
    events: dict[str, int]

    @property
    def compared(self) -> int:
        """Return how many answers and requests were compared."""
        return self.answers + self.requests


def check_policy(policy: Policy, workload: str, kind: str, **settings: Any) -> Checked:
    """Play a run of a workload and compare each answer of the kernel with Python's.

    ``kind`` is eviction or prefetch; ``settings`` are those of ``run``. A policy that declares no
    ``most_rounds`` has the default.

    >>> check_policy(CP(), "MM", "eviction", scale="1/64").wrong  # doctest: +SKIP
    0
    """
    if why := missing():
        raise TidegateError(f"--check cannot play to the kernel: {why}")
    policy.most_rounds = policy.most_rounds or ROUNDS
    spec = replace(RunSpec.from_settings(workload, {**settings, kind: policy}), compiled=False)
    with taping(policy) as tape:
        try:
            spec.run(cache=False)
        except PolicyError as error:  # what cannot be emitted says so when the policy starts
            raise (
                error.__cause__ if isinstance(error.__cause__, TidegateError) else error
            ) from None
    if not tape.calls:
        raise TidegateError(
            f"'{label(policy)}' decides nothing while a program runs: there is nothing to check; "
            "--to modprobe sets what it sets"
        )
    return play(tape, label(policy), workload, policy.most_rounds)


def play(tape: Tape, name: str, workload: str, rounds: int) -> Checked:
    """Compile a tape's policy, have the verifier accept it, play the tape and compare."""
    with tempfile.TemporaryDirectory(prefix="tidegate-bpf-") as folder:
        source = write_core(Path(folder), tape.code)
        built = compile_bpf(source, "CHECK")
        with Loaded(built) as loaded:
            played = _play_rows(loaded, tape, timed=False)
            instructions = loaded.instructions("call")
        took = _times(built, tape)
        wrong = list(_differences(tape, played))
        hooks = 0
        if has_dummy_ops() and not wrong:
            with Loaded(compile_bpf(source, "CHECK", "DUMMY_OPS")) as loaded:
                hooks, wrong = _play_hooks(loaded, tape)
    events = tape.rows["event"]
    kinds, counts = np.unique(events[events < FIRST_SHOWN], return_counts=True)
    return Checked(
        policy=name,
        workload=workload,
        calls=tape.calls,
        answers=len(tape.answers),
        requests=len(tape.requests),
        wrong=len(wrong),
        first_wrong=wrong[0] if wrong else "",
        instructions=instructions,
        ns_per_call=played.ns / max(1, tape.calls),
        longest_ns=int(took.max()),
        longest_event=EVENT_NAMES[int(tape.rows["event"][took.argmax()])],
        hook_calls=hooks,
        rounds=rounds,
        events={EVENT_NAMES[int(k)]: int(n) for k, n in zip(kinds, counts, strict=True)},
    )


class _Played(NamedTuple):
    """What the kernel answered to each row, and what it requested."""

    answers: list[int]
    requests: list[tuple[int, ...]]
    failed: int
    ns: int
    took_ns: NDArray[Any]  # by each row, if timed


def _play_rows(loaded: Loaded, tape: Tape, timed: bool) -> _Played:
    """Play all rows, as many at a time as the kernel's map holds."""
    rows, answers, requests, took = tape.rows, [], [], []
    ns = failed = 0
    for begin in range(0, len(rows), MOST_ROWS):
        part = rows[begin : begin + MOST_ROWS]
        loaded.write("tape", part)
        batch = Batch(rows=len(part), timed=timed)
        loaded.run("play", batch)
        answers += loaded.read("answers", np.int64)[: len(part)].tolist()
        requests += loaded.read("asked", _REQUEST)[: batch.asked].tolist()
        ns, failed = ns + batch.ns, failed or batch.failed
        took.append(loaded.read("took_ns", np.uint32)[: len(part)])
    return _Played(answers, requests, failed, ns, np.concatenate(took))


def _times(built: Path, tape: Tape) -> NDArray[Any]:
    """Return what each call takes: the least of some plays, as interrupts come at other times."""
    plays = []
    for _ in range(_TIMED_PLAYS):
        with Loaded(built) as loaded:
            plays.append(_play_rows(loaded, tape, timed=True).took_ns)
    return np.min(plays, axis=0)


def _differences(tape: Tape, played: _Played) -> Iterator[str]:
    """Yield where the kernel's answers differ."""
    if played.failed:
        yield f"the policy failed at line {played.failed}"
    rows = tape.rows
    for row, answer in tape.answers.items():
        if played.answers[row] != answer:
            name = EVENT_NAMES[int(rows["event"][row])]
            yield f"{name}() in row {row} answers {played.answers[row]}, not {answer}"
    if len(played.requests) != len(tape.requests):
        yield f"{len(played.requests)} requests, not {len(tape.requests)}"
    for number, (one, other) in enumerate(zip(played.requests, tape.requests, strict=False)):
        if one != other:
            yield f"request {number} is {one}, not {other}"


class _One(ctypes.Structure):
    """The arguments of a hook: bpf_dummy_ops.test_2"""

    _fields_ = [(name, ctypes.c_uint64) for name in ("state", "a1", "a2", "a3", "a4")]


def _play_hooks(loaded: Loaded, tape: Tape) -> tuple[int, list[str]]:
    """Play the first rows as calls of a hook, one by one; return how many, and what differs."""
    state, wrong, calls = ctypes.c_int32(0), [], 0
    for row, (event, region, value) in enumerate(tape.rows[:_HOOK_ROWS].tolist()):
        one = _One(ctypes.addressof(state), region, event, 0, value & (1 << 64) - 1)
        loaded.run("hook", one)
        calls += event < FIRST_SHOWN
        if row in tape.answers and state.value != tape.answers[row]:
            wrong.append(f"the hook answers {state.value} in row {row}, not {tape.answers[row]}")
    return calls, wrong
