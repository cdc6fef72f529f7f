"""The host's flow of launches (host_flow.py), from the control flow of main.

Three assumptions replace LLVM's estimates, which are made for code as a whole:
a way on which no launch can be reached any more is not taken, unless it leaves a loop around
launches (such are the exits after a wrong argument or a failed allocation);
a loop around launches turns at least once;
it turns as often as its counter says, where the bound is a constant or a variable of the source.

An object that is allocated in such a loop is another one in each turn: the allocation ends the one
before, wherever that was freed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tidegate.compiler.analysis.chain import eliminated
from tidegate.compiler.analysis.flow import NEVER, Edges, Flow, enter, take_others
from tidegate.compiler.analysis.sizes import Formula, Named
from tidegate.compiler.analysis.trip_counts import Count, counted_exits
from tidegate.compiler.analysis.walks import covered_by
from tidegate.compiler.host_flow import MOST_TURNS, HostFlow, HostLoop
from tidegate.compiler.ir.calls import CONFIGURES, LAUNCHING
from tidegate.compiler.ir.loops import Loop, Successors
from tidegate.compiler.ir.module import Instruction, key

ASSUMED_TURNS = 32.0
"""How often a loop turns of which nothing is known, as LLVM assumes."""
ENDLESS = ""
"""The block outside of a loop that nothing leaves."""


@dataclass(frozen=True)
class _Exit:
    """A loop's last branch."""

    out: str  # the block outside
    count: Formula | None
    step: int
    turns: float
    depth: int


def host_flow(
    flow: Flow,
    places: Sequence[str],
    name: Named,
    allocated: Mapping[str, Instruction] = MappingProxyType({}),
) -> HostFlow:
    """Return the flow of launches at these blocks (one for each launch, repeated for several).

    `allocated`: the allocation of each object, by its name.
    """
    edges = dict(flow.edges)
    onward = _reaching(set(places), flow.successors)
    around = [loop for loop in flow.loops if loop.blocks & set(places)]
    _without_dead_ends(edges, flow, onward, around)
    _configured(edges, flow)
    for loop in around:
        enter(edges, flow, loop)
    exits = _exits(edges, flow, around, name)
    # states: the blocks kept, two for the ways on from each loop's branch, then the other blocks
    kept = list(dict.fromkeys([flow.blocks[0], *places, *exits]))
    number = {block: n for n, block in enumerate(kept)}
    ways = {block: len(kept) + 2 * n for n, block in enumerate(exits)}
    states = len(kept) + 2 * len(exits)
    born = _births(flow, around, allocated)
    births = {block: states + n for n, block in enumerate(dict.fromkeys(born.values()))}
    states += len(births)
    numbers = {block: n + states for n, block in enumerate(flow.blocks)} | number
    steps = {(state, numbers[block]): 1.0 for block, state in births.items()}
    into = numbers | births  # a block that allocates is entered through the allocation
    for (a, b), p in edges.items():
        if a not in exits:
            steps[numbers[a], into[b]] = p
        elif b == exits[a].out:
            steps[ways[a] + 1, into[b]] = 1.0
        else:
            steps[ways[a], into[b]] = _share(edges, flow, a, b, exits[a].out)
    reduced = eliminated(states + len(flow.blocks), steps, range(states))
    loops = tuple(
        HostLoop(number[block], ways[block], ways[block] + 1, x.turns, x.count, x.step, x.depth)
        for block, x in exits.items()
    )
    fixed = tuple((a, b, p) for (a, b), p in reduced.items())
    made = tuple((named, births[block]) for named, block in born.items())
    return HostFlow(states, fixed, loops, tuple(number[block] for block in places), made)


def endless(flow: Flow, places: Sequence[str], name: Named) -> list[frozenset[str]]:
    """Return the blocks of each loop around launches that nothing was found to leave."""
    around = [loop for loop in flow.loops if loop.blocks & set(places)]
    ended = _exits(dict(flow.edges), flow, around, name)
    ends = {block for block, left in ended.items() if left.out == ENDLESS}
    return [loop.blocks for loop in around if ends & {loop.header, *loop.latches}]


def _births(
    flow: Flow, around: Sequence[Loop], allocated: Mapping[str, Instruction]
) -> dict[str, str]:
    """Return the blocks of the allocations in loops around launches, by the objects' names; without
    those that come after a launch in their own block.
    """
    found = {}
    for name, allocation in allocated.items():
        before: list[Instruction] = []
        for i in flow.body.blocks[allocation.block]:
            if i.key == allocation.key:
                break
            before.append(i)
        looped = any(allocation.block in loop.blocks for loop in around)
        if looped and not any(i.callee in LAUNCHING for i in before):
            found[name] = allocation.block
    return found


def _reaching(targets: set[str], successors: Successors) -> set[str]:
    """Return the blocks from which a target can be reached, targets included."""
    before: dict[str, list[str]] = {block: [] for block in successors}
    for block, following in successors.items():
        for after in following:
            before[after].append(block)
    found, pending = set(targets), list(targets)
    while pending:
        for block in before[pending.pop()]:
            if block not in found:
                found.add(block)
                pending.append(block)
    return found


def _without_dead_ends(edges: Edges, flow: Flow, onward: set[str], around: list[Loop]) -> None:
    """Take the ways to a launch where others lead to none, except those out of the loops `around`
    launches.
    """
    returning = _reaching(
        {
            b
            for b, block in flow.body.blocks.items()
            if block and block[-1].opcode in ("ret", "resume")
        },
        flow.successors,
    )
    for block, following in flow.successors.items():
        if not any(b in onward for b in following):
            continue
        loops = [loop for loop in around if block in loop.blocks]
        dead = [
            b
            for b in following
            if b not in onward and (b not in returning or all(b in loop.blocks for loop in loops))
        ]
        take_others(edges, flow, block, dead)


def _configured(edges: Edges, flow: Flow) -> None:
    """Take the way to a CUDA launch: the branch before it asks whether its configuration failed."""
    for block, following in flow.successors.items():
        branch = flow.body.blocks[block][-1] if flow.body.blocks[block] else None
        if branch is None or branch.opcode != "br" or len(following) != 2:
            continue
        condition = flow.body.by_key.get(key(branch.operands[0]))
        if condition is None or condition.opcode != "icmp":
            continue
        called = flow.body.by_key.get(key(condition.operands[0]))
        if called is not None and called.callee in CONFIGURES:
            true, false = branch.successors()
            take_others(edges, flow, block, [false if " eq " in condition.text else true])


def _exits(edges: Edges, flow: Flow, loops: Sequence[Loop], name: Named) -> dict[str, _Exit]:
    """Return each loop's last branch, by its block: the one that a counter decides; without one,
    the likeliest to leave. A loop that nothing leaves ends the program after some turns.
    """
    found: dict[str, _Exit] = {}
    for loop in loops:
        depth = sum(loop.blocks < other.blocks for other in loops)
        counts = counted_exits(flow.body, loop, flow.successors)
        counted = [(c, None if c.times else _formula(c, flow, name)) for c in counts]
        known = [(c, covered) for c, covered in counted if c.times or covered]
        if known:
            c, covered = min(known, key=lambda each: each[0].times is None)
            turns = c.times or 1 / max(edges[c.block, c.out], NEVER)
            found.setdefault(c.block, _Exit(c.out, covered, abs(c.step), max(1.0, turns), depth))
            continue
        leaving = [
            (edges[a, b], a, b)
            for a in loop.blocks
            for b in flow.successors[a]
            if b not in loop.blocks and edges[a, b] > 10 * NEVER and len(flow.successors[a]) == 2
        ]
        p, a, b = max(leaving, default=(0.0, "", ""))
        if p * MOST_TURNS >= 1:
            found.setdefault(a, _Exit(b, None, 1, max(1.0, 1 / p), depth))
        else:  # every turn passes its one latch, or the header
            a = loop.latches[0] if len(loop.latches) == 1 else loop.header
            found.setdefault(a, _Exit(ENDLESS, None, 1, ASSUMED_TURNS, depth))
    return found


def _formula(count: Count, flow: Flow, name: Named) -> Formula | None:
    """Return what a loop's counter covers, if that is computed from variables of the source."""
    covered = covered_by(count, flow, name)
    named = not any(v.startswith("%") for v in covered.variables())
    return covered if covered.variables() and named else None


def _share(edges: Edges, flow: Flow, a: str, b: str, out: str) -> float:
    """Return the probability of a step among those that do not leave by `out`."""
    total = sum(edges[a, other] for other in flow.successors[a] if other != out)
    return edges[a, b] / total if total else 1.0
