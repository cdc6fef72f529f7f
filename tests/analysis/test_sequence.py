import numpy as np
import pytest

from tidegate.analysis import Sequence
from tidegate.analysis.sequence import checked, collapse
from tidegate.errors import TidegateError


def test_ids_are_pages_or_their_regions_in_trace_order(small):
    trace = small([0, 31, 32, 95, 5], cuts=[2])
    assert [chunk.tolist() for chunk in Sequence(trace, "page")] == [[0, 31], [32, 95, 5]]
    assert [chunk.tolist() for chunk in Sequence(trace, "region")] == [[0, 0], [1, 2, 0]]
    assert (Sequence(trace, "page").bound, Sequence(trace, "region").bound) == (96, 3)
    assert (Sequence(trace, "page").unit_bytes, Sequence(trace, "region").unit_bytes) == (
        1 << 16,
        1 << 21,
    )


def test_repeats_collapse_across_chunks(small):
    ids, touches = Sequence(small([4, 4, 4, 9, 9, 4], cuts=[2, 2]), "page").collapsed()
    assert (ids.tolist(), touches) == ([4, 9, 4], 6)


def test_collapse_leaves_what_it_was_given():
    given = np.array([1, 1, 2], np.int32)
    assert collapse(given).tolist() == [1, 2]
    assert given.tolist() == [1, 1, 2]


def test_a_page_outside_the_objects_is_refused(small):
    with pytest.raises(TidegateError, match="touches page 40, but has pages 0 to 31"):
        list(Sequence(small([1, 40], room=32), "page"))


def test_an_unknown_unit_is_refused(small):
    with pytest.raises(TidegateError, match="unit must be page or region, got 'frame'"):
        Sequence(small([1]), "frame")


@pytest.mark.parametrize(
    ("ids", "capacity", "message"),
    [
        ([1, -3], 1, "ids must be at least 0 .* got -3"),
        ([2**40], 1, "ids must be at least 0 and below"),
        ([1], 0, "capacity must be at least 1, got 0"),
    ],
)
def test_arrays_that_cannot_be_ids_are_refused(ids, capacity, message):
    with pytest.raises(TidegateError, match=message):
        checked(ids, capacity)
