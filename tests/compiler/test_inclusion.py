"""The solver of points-to analysis, on small graphs, and against a plain fixed point."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.compiler.analysis.inclusion import InclusionGraph, Location, Origin
from tidegate.compiler.analysis.points_to import PointsTo
from tidegate.compiler.ir.loops import components
from tidegate.compiler.ir.module import Body, parse

NODES = 8
edges = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)), max_size=24)


def heap(name: str) -> Location:
    return Origin("heap", name), 0


@given(edges, edges)
@settings(deadline=None)
def test_every_node_holds_what_leads_to_it(first: list, later: list) -> None:
    """`later` edges come from rules, when nodes on a cycle may have become one already."""
    graph = InclusionGraph()
    nodes = [graph.new_node() for _ in range(NODES)]
    for n in nodes:
        graph.add(n, heap(f"h{n}"))
    for a, b in first:
        graph.link(a, b)
    for a, b in later:
        graph.on_new(a, linking(graph, a, b))
    graph.solve()
    for n in nodes:
        leads = {n}
        for _ in nodes:
            leads |= {a for a, b in [*first, *later] if b in leads}
        assert {o.name for o, _ in graph.held(n)} == {f"h{a}" for a in leads}


def linking(graph: InclusionGraph, a: int, b: int) -> Callable[[Location], None]:
    return lambda _: graph.link(a, b)


def test_a_rule_sees_everything_that_its_cycle_holds() -> None:
    graph = InclusionGraph()
    a, b = graph.new_node(), graph.new_node()
    seen: set[str] = set()
    graph.on_new(a, lambda place: seen.add(place[0].name))
    graph.link(a, b)
    graph.link(b, a)
    graph.add(b, heap("x"))
    graph.solve()
    graph.add(b, heap("y"))
    graph.solve()
    assert seen == {"x", "y"}


def test_components_come_after_those_they_lead_to() -> None:
    onward = {1: [2], 2: [3], 3: [2, 4], 4: [], 5: [1, 9]}
    assert [sorted(found) for found in components(onward)] == [[4], [2, 3], [1], [5]]


def test_a_pointer_stepped_in_a_loop_may_be_anywhere_at_once() -> None:
    """It would get 64 offsets before, and each of them would be passed on."""
    text = """
declare ptr @malloc(i64)
define i32 @main(i1 %again) {
start:
  %rows = call ptr @malloc(i64 80)
  br label %turn
turn:
  %at = phi ptr [ %rows, %start ], [ %after, %turn ]
  %field = getelementptr i8, ptr %at, i64 4
  %after = getelementptr i8, ptr %at, i64 8
  br i1 %again, label %turn, label %end
end:
  %second = getelementptr i8, ptr %rows, i64 16
  ret i32 0
}"""
    module = parse(text, "text")
    body = Body(module.get_function("main"))
    points = PointsTo(body)
    offsets = {i.ref.name: {at for _, at in points.targets(i.ref)} for i in body if i.ref.name}
    assert offsets["after"] == {None}
    assert offsets["at"] == {0, None}
    assert offsets["field"] == {4, None}
    assert offsets["second"] == {16}
