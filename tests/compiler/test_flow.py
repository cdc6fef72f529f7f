"""Loops, trip counts, layouts, formulas and distances on programs small enough to be worked out by
hand; no clang needed.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.compiler.analysis.chain import Distances, use_of_object, use_of_region
from tidegate.compiler.analysis.flow import Flow, branch_probabilities
from tidegate.compiler.analysis.host import host_flow
from tidegate.compiler.analysis.sizes import Formula
from tidegate.compiler.ir.layout import gep_offset, struct_bodies
from tidegate.compiler.ir.loops import natural_loops
from tidegate.compiler.ir.module import Body, parse
from tidegate.compiler.model import Argument, LaunchSite
from tidegate.errors import TidegateError


def nested(outer: int, inner: int) -> Flow:
    """for outer times { A; for inner times { B } }"""
    text = f"""
define i32 @main() {{
entry:
  br label %a
a:
  %i = phi i32 [ 0, %entry ], [ %i1, %a.end ]
  br label %b
b:
  %j = phi i32 [ 0, %a ], [ %j1, %b ]
  %j1 = add i32 %j, 1
  %again = icmp slt i32 %j1, {inner}
  br i1 %again, label %b, label %a.end
a.end:
  %i1 = add i32 %i, 1
  %done = icmp eq i32 %i1, {outer}
  br i1 %done, label %end, label %a
end:
  ret i32 0
}}"""
    module = parse(text, "nested")
    return Flow(Body(module.get_function("main")), branch_probabilities(str(module))["main"])


def distances_of(flow: Flow, launches: list[LaunchSite]) -> Distances:
    host = host_flow(flow, [x.block for x in launches], lambda name: None)
    _, following = host.next_launches(host.turns({}))
    return Distances(following, launches)


def launch(region: str, block: str, *objects: str, index: int = 0) -> LaunchSite:
    return LaunchSite(
        region, block, index, tuple(Argument((o,), n, 0x21) for n, o in enumerate(objects)), None
    )


@pytest.mark.slow
@settings(deadline=None)  # LLVM runs in a separate process
@given(st.integers(1, 40), st.integers(1, 40))
def test_frequencies_are_trip_counts(outer: int, inner: int) -> None:
    flow = nested(outer, inner)
    assert flow.frequency["a"] == pytest.approx(outer)
    assert flow.frequency["b"] == pytest.approx(outer * inner)
    assert flow.frequency["end"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("start", "step", "again", "turns"),
    [
        (100, -10, "sgt i32 %next, 0", 10),
        (100, -10, "ugt i32 %i, 10", 10),  # clang's form of the line above
        (5, -1, "ne i32 %i, 0", 6),
        (9, -1, "ult i32 %i, 10", 11),  # an unsigned counter that wraps
        (0, 1, "ult i32 %next, -2147483648", None),  # 2³¹ iterations are not counted
        (-3, 1, "slt i32 %next, 4", 7),
    ],
)
def test_loops_that_count_down_or_have_no_sign(
    start: int, step: int, again: str, turns: int | None
) -> None:
    text = f"""
define i32 @main() {{
entry:
  br label %a
a:
  %i = phi i32 [ {start}, %entry ], [ %next, %a ]
  %next = add i32 %i, {step}
  %again = icmp {again}
  br i1 %again, label %a, label %end
end:
  ret i32 0
}}"""
    flow = Flow(
        Body(parse(text, "down").get_function("main")), {("a", "a"): 0.96875, ("a", "end"): 0.03125}
    )
    assert flow.frequency["a"] == pytest.approx(turns or 32)


def test_distances_in_closed_form() -> None:
    """From B, the next B is 1 away m - 1 times of m, and past A, 2 away, the others; the last of
    all has none.
    """
    outer, inner = 10, 4
    a, b = launch("A", "a", "x"), launch("B", "b", "y")
    distances = distances_of(nested(outer, inner), [a, b])
    again, past = outer * (inner - 1), outer - 1
    assert distances.to(use_of_object("y"))[1] == pytest.approx(
        (again + 2 * past) / (again + past), rel=0.01
    )
    assert distances.to(use_of_object("x"))[0] == pytest.approx(inner + 1)
    assert distances.to(use_of_region("B"))[0] == pytest.approx(1)


def test_what_comes_next() -> None:
    outer, inner = 10, 4
    steps = distances_of(
        nested(outer, inner), [launch("A", "a", "x"), launch("B", "b", "y")]
    ).next.tolist()
    assert steps[0] == pytest.approx([0, 1])
    # the rest is the end of the program
    assert steps[1] == pytest.approx([(1 - 1 / outer) / inner, 1 - 1 / inner])


def test_never_again_is_infinite() -> None:
    last = launch("last", "end", "x")
    distances = distances_of(nested(3, 3), [launch("A", "a", "y"), last])
    assert distances.to(use_of_object("x"))[1] == math.inf
    assert distances.to(use_of_object("y"))[1] == math.inf


def test_launches_in_one_block() -> None:
    row = [
        launch(region, "a", name, index=n)
        for n, (region, name) in enumerate([("P", "x"), ("Q", "y"), ("R", "x")])
    ]
    distances = distances_of(nested(5, 1), row)
    assert distances.to(use_of_object("x")) == pytest.approx([2, 1, 1])
    assert distances.to(use_of_object("y")) == pytest.approx([1, 3, 2])
    assert distances.next[0].tolist() == [0, 1, 0]
    assert distances.next[2] == pytest.approx([0.8, 0, 0])


def test_one_of_several_objects_is_used_in_its_share() -> None:
    either = LaunchSite(
        "A", "a", 0, (Argument(("x", "y", "z"), 0, 0x21), Argument(("x", "y", "z"), 1, 0x21)), None
    )
    distances = distances_of(nested(100_000, 1), [either])
    # two of three each time
    assert distances.to(use_of_object("x"))[0] == pytest.approx(1.5, rel=1e-3)


def test_an_endless_loop_has_an_answer() -> None:
    text = "define i32 @main() {\nentry:\n br label %a\na:\n br label %b\nb:\n br label %a\n}"
    flow = Flow(Body(parse(text, "endless").get_function("main")), {})
    distances = distances_of(flow, [launch("A", "a", "x"), launch("B", "b", "y")])
    assert distances.to(use_of_object("x")) == pytest.approx([2, 1])
    assert flow.frequency["a"] > 1e6


def test_loops_outermost_first() -> None:
    loops = natural_loops({"e": ("h",), "h": ("k", "x"), "k": ("k", "l"), "l": ("h",), "x": ()})
    assert [(loop.header, loop.latches, set(loop.blocks)) for loop in loops] == [
        ("h", ("l",), {"h", "k", "l"}),
        ("k", ("k",), {"k"}),
    ]


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("%x = getelementptr inbounds i8, ptr %p, i64 24", 24),
        ("%x = getelementptr inbounds [4 x ptr], ptr %p, i64 0, i64 3", 24),
        ("%x = getelementptr inbounds nuw %struct.args, ptr %p, i32 0, i32 3", 16),
        ("%x = getelementptr %struct.args, ptr %p, i64 1", 40),
        ("%x = getelementptr inbounds %struct.args, ptr %p, i32 0, i32 4, i64 1, !dbg !7", 28),
        ("%x = getelementptr <{ i8, i32 }>, ptr %p, i64 2, i32 1", 11),
        ("%x = getelementptr float, ptr %p, i64 -2", -8),
        ("%x = getelementptr inbounds float, ptr %p, i64 %i", None),
    ],
)
def test_layout(text: str, bytes_: int | None) -> None:
    structs = struct_bodies("%struct.args = type { i32, i8, ptr, ptr, [3 x i32] }")
    assert gep_offset(text, structs) == bytes_


def test_formula() -> None:
    n, m = Formula.variable("n"), Formula.variable("m")
    size = (n + Formula.number(1)) * (m + Formula.number(-1)) * Formula.number(4)
    assert size.at({"n": 3, "m": 5}) == 64
    assert str(Formula.number(0)) == "0"
    with pytest.raises(TidegateError, match=r"needs a value for m, n; give each as name=number"):
        size.at({})
