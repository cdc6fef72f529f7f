"""What a kernel reads, changes and writes back is loaded before it is stored."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tidegate.trace.geometry import Geometry
from workloads.read_traces import program, read

GEOMETRY = Geometry(256, 1024)  # so that small problems have many pages


class Change(NamedTuple):
    """An object that a launch changes in place."""

    launch: str
    object: str
    site: int | None = None  # the access site of load and store, where one object has several
    cleared: bool = False  # whether each block first stores something else
    skip: int = 0  # launches of that name that do not change it


# ``lanes=1`` makes a wave one block of the trace
CHANGED: dict[str, tuple[dict[str, object], tuple[Change, ...]]] = {
    "sparse": ({"bytes": 4 << 20, "pages": 2, "passes": 1}, (Change("pass1", "a"),)),
    "cppe-MVT": ({"bytes": 80_000}, (Change("mvt_kernel1", "x1"), Change("mvt_kernel2", "x2"))),
    "cppe-BIC": (
        {"bytes": 80_000},
        (Change("bicg_kernel1", "s", cleared=True), Change("bicg_kernel2", "q", cleared=True)),
    ),
    "cppe-BKP": (
        {"bytes": 40_000},
        (
            Change("bpnn_layerforward_CUDA", "input_hidden"),
            Change("bpnn_adjust_weights_cuda", "input_hidden"),
            Change("bpnn_adjust_weights_cuda", "input_prev_weights"),
        ),
    ),
    "cppe-SRD": ({"bytes": 40_000, "iterations": 1}, (Change("srad_cuda_2", "J"),)),
    "cppe-SGM": ({"bytes": 100_000}, (Change("mysgemmNT", "C"),)),
    "cppe-MRQ": (
        {"bytes": 80_000, "samples": 1500},
        (Change("ComputeQ_GPU", "Qr"), Change("ComputeQ_GPU", "Qi")),
    ),
    "cppe-HIS": (
        {"bytes": 700_000, "iterations": 1, "ranges": 1},
        (
            Change("histo_final_kernel", "global_histo"),
            Change("histo_final_kernel", "global_overflow"),
        ),
    ),
    "cppe-HYB": ({"bytes": 200_000}, (Change("bucketprefixoffset", "prefixoffsets"),)),
    "cppe-HWL": (
        {"bytes": 100_000, "frames": 11},
        # frame 0 cuts T out, frame 10 updates it
        (
            Change("kernel", "T", skip=1),
            Change("kernel", "in2_sub2", cleared=True),
            Change("kernel", "in2_sqr_sub2", cleared=True),
        ),
    ),
    "cppe-LEU": (
        {"bytes": 1_000_000, "frames": 1, "rounds": 2},
        (Change("IMGVF_kernel", "IMGVF_0"),),
    ),
    "cppe-B+T": ({"bytes": 300_000}, (Change("findK", "currKnode_k"),)),
    "cppe-BFS": (
        {"bytes": 60_000, "lanes": 1},
        (Change("Kernel", "graph_mask"), Change("Kernel2", "updating_graph_mask")),
    ),
    "BFS": (
        {"bytes": 60_000, "lanes": 1},
        (Change("Kernel", "graph_mask"), Change("Kernel2", "updating_graph_mask")),
    ),
    "LU": (
        {"bytes": 40_000, "nb": 30, "tile": 16, "wave": 4, "lanes": 1, "pivot": True},
        (
            Change("getf2", "A", site=0),
            Change("laswp", "A", site=0),
            Change("laswp", "A", site=2),
            Change("trsm", "A", site=1),
            Change("gemm", "A", site=2),
        ),
    ),
    "openmp-bfs": ({"bytes": 300_000}, (Change("visit", "frontier"), Change("advance", "next"))),
    "openmp-louvain": (
        {"bytes": 300_000, "rounds": 2},
        (Change("update_communities", "communities"),),
    ),
    "openmp-srad": (
        {"bytes": 300_000, "iterations": 1},
        (Change("extract", "image"), Change("diffuse", "image"), Change("compress", "image")),
    ),
    "openmp-kmeans": ({"bytes": 300_000, "rounds": 1}, (Change("find_nearest", "membership"),)),
    "openmp-backprop": (
        {"bytes": 300_000},
        (
            Change("adjust_weights", "hidden_weights"),
            Change("adjust_weights", "hidden_previous"),
            Change("adjust_weights/2", "input_weights"),
            Change("adjust_weights/2", "input_previous"),
        ),
    ),
}


@pytest.mark.parametrize(
    ("name", "change"),
    [(name, change) for name, (_, changes) in CHANGED.items() for change in changes],
)
def test_a_page_that_is_changed_is_loaded_before_it_is_stored(name: str, change: Change) -> None:
    trace = program(name, GEOMETRY, **CHANGED[name][0])
    (owner,) = (o for o in trace.objects if o.name == change.object)
    pages = range(owner.first_page, owner.first_page + owner.pages)
    stores = 0
    for launch in [x for x in read(trace) if x.name == change.launch][change.skip :]:
        for touches in launch.blocks():
            mine = [t[:2] for t in touches if t[0] in pages and change.site in (None, t[3])]
            loaded = {page for page, _ in mine} if change.cleared else set[int]()
            for page, write in mine:
                if write:
                    assert page in loaded
                    loaded.discard(page)  # the next store has a load of its own
                    stores += 1
                else:
                    loaded.add(page)
    assert stores
