"""Applications with irregular inputs, against their kernels in plain Python, thread by thread."""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, pi, sin, sqrt

import numpy as np
import pytest

from papers.cppe.applications.python_kernels import Block, check, check_launch, small
from tidegate.papers.cppe.applications import btree, hybridsort, videos
from tidegate.trace.geometry import Geometry
from tidegate.workloads.graph import csr
from tidegate.workloads.rodinia_tree import grown_tree
from workloads.read_traces import program, read


@pytest.mark.slow
def test_leukocyte() -> None:
    n, m = 46, 219
    workload, trace = small(
        "cppe-LEU", page=1024, bytes=4 * 4 * m * n + 2 * 2 * 13284, frames=2, rounds=3
    )
    assert workload.columns == n

    def gicov() -> Iterator[Block]:
        for i in range(22, n - 22):
            block = Block(trace)
            for radius in range(8, 21, 2):
                block.step()
                for point in range(150):
                    x, y = (int(f(2 * pi * point / 150) * radius) for f in (cos, sin))
                    for j in range(22, m - 22):
                        for name in ("grad_x", "grad_y"):
                            block.use(name, (i + x) * m + j + y)
            for j in range(22, m - 22):
                block.use("gicov", i * m + j, write=True)
            yield block

    def dilate() -> Iterator[Block]:
        for first in range(0, m * n, 176):
            block = Block(trace)
            for thread in range(first, min(m * n, first + 176)):
                i, j = thread % m, thread // m
                for x in range(max(0, j - 12), min(n, j + 13)):
                    for y in range(max(0, i - 12), min(m, i + 13)):
                        if sqrt((x - j) ** 2 + (y - i) ** 2) <= 12:
                            block.use("gicov", x * m + y)
                block.use("dilated", i * n + j, write=True)
            yield block

    def imgvf(frame: int) -> Iterator[Block]:
        block = Block(trace)
        whole = range(41 * 81)
        for name, write in (
            (f"IMGVF_{frame}", False),
            *(3 * [(f"I_{frame}", False)]),
            (f"IMGVF_{frame}", True),
        ):
            if not write:
                block.step()
            for i in whole:
                block.use(name, i, write)
        yield block

    check(trace, [gicov(), dilate(), imgvf(0), imgvf(1)])


@pytest.mark.slow
def test_heartwall() -> None:
    workload, trace = small("cppe-HWL", page=1024, bytes=1_000_000, frames=12)
    shape, points = workload.shape, workload.points
    template, search = shape.template, shape.search
    conv, padded = template + search - 1, search + 2 * template
    sizes = dict(zip(videos.ARRAYS, shape.elements, strict=True))
    assert sizes["in2"] == search**2
    assert (sizes["conv"], sizes["in2_sub_cumh"], sizes["in2_pad_cumv"]) == (
        conv**2,
        conv * padded,
        padded**2,
    )
    loads: dict[int, int] = {}  # of T in an ordinary frame, by point
    for frame, launch in enumerate(read(trace)):
        blocks = launch.blocks()
        assert len(blocks) == points
        for point, touches in enumerate(blocks):
            mine = {name: heartwall_pages(trace, shape, name, point) for name in videos.ARRAYS[1:]}
            written = {page for page, write, _, _ in touches if write}
            names = set(videos.ARRAYS[2:]) if frame else {"T"}
            names |= {"T"} if frame % 10 == 0 else set()
            assert written == set().union(*(mine[name] for name in names))
            read_only = {page for page, _, _, reference in touches if reference > 0} - written
            assert read_only == (mine["T"] - written if frame else set())
            loaded = sum(page in mine["T"] and not write for page, write, _, _ in touches)
            updated = len(mine["T"]) if frame == 10 else 0  # T = 0.87 T + 0.13 frame
            assert loaded == (loads.setdefault(point, loaded) + updated if frame > 1 else loaded)


def heartwall_pages(trace: object, shape: videos.PointArrays, name: str, point: int) -> set[int]:
    """Return the pages of one point's array."""
    (owner,) = (o for o in trace.objects if o.name == name)  # type: ignore[attr-defined]
    at = videos.ARRAYS.index(name)
    low = shape.stride[at] * point
    high = low + 4 * shape.elements[at]
    page = trace.geometry.page  # type: ignore[attr-defined]
    return set(range(owner.first_page + low // page, owner.first_page + (high - 1) // page + 1))


def test_heartwall_sweeps_as_often_as_the_kernel() -> None:
    """Yield its loops between two __syncthreads, but for the one that cuts in2 out of the frame."""
    used = {array: [phase for phase in videos.PHASES if array in phase] for array in range(14)}
    assert len(used[videos.ARRAYS.index("conv")]) == 3
    assert len(used[videos.ARRAYS.index("in2")]) == 3
    assert len(used[videos.ARRAYS.index("in2_pad_cumv")]) == 8
    assert len(videos.PHASES) == 31


def test_heartwall_is_rodinias() -> None:
    workload, _ = small("cppe-HWL")
    shape = workload.shape
    assert (workload.points, shape.frame_rows, shape.frame_columns) == (51, 590, 609)
    assert (shape.template, shape.search) == (51, 81)


@pytest.mark.slow
def test_histo() -> None:
    workload, trace = small("cppe-HIS", bytes=700_000, iterations=2, ranges=1)
    width, height = workload.width, workload.height
    pixels = width * height
    sizes = workload.sizes()
    bins, middle = sizes["final_histo"], sizes["global_overflow"] // 4
    low = (bins - middle) // 2 // 4 * 4
    assert low > 0
    assert sizes["global_subhisto"] == 14 * middle

    def prescan() -> Iterator[Block]:
        for b in range(64):
            block = Block(trace)
            for _ in range(2):
                block.step()
                for i in range(pixels // 64 * b, pixels // 64 * b + pixels // 64 // 8):
                    block.use("input", i)
            yield block

    def intermediates() -> Iterator[Block]:
        for b in range(-(-height // 16)):
            block = Block(trace)
            for i in range(16 * b * width, min(height, 16 * b + 16) * width):
                block.use("input", i)
                block.use("sm_mappings", i, write=True)
            yield block

    def main() -> Iterator[Block]:
        for y in range(-(-middle // 24576)):
            for x in range(14):
                block = Block(trace)
                for thread in range(768):
                    for i in range(768 * x + thread, pixels, 768 * 14):
                        block.use("sm_mappings", i)
                for i in range(24576 * y, min(middle, 24576 * (y + 1))):
                    block.use("global_subhisto", middle * x + i, write=True, size=1)
                yield block

    def final() -> Iterator[Block]:
        for b in range(42):
            block = Block(trace)
            for thread in range(512):
                start = 512 * b + thread
                for four in range(start, low // 4, 42 * 512):
                    block.change("global_histo", four, size=8)
                    block.use("final_histo", four, write=True)
                for four in range(start, middle // 4, 42 * 512):
                    block.change("global_overflow", four, size=16)
                    for x in range(14):
                        block.use("global_subhisto", middle * x // 4 + four)
                    block.use("final_histo", low // 4 + four, write=True)
                for four in range(low // 4 + start, (bins - middle) // 4, 42 * 512):
                    block.change("global_histo", four, size=8)
                    block.use("final_histo", middle // 4 + four, write=True)
            yield block

    check(trace, [kernel() for _ in range(2) for kernel in (prescan, intermediates, main, final)])


def test_spmv() -> None:
    workload, trace = small("cppe-SPV", bytes=120_000, iterations=2)
    side = workload.side
    assert side > 16
    rows = [
        [
            y2 * side + x2
            for y2 in range(side)
            for x2 in range(side)
            if max(abs(y2 - y), abs(x2 - x)) <= 2
        ]
        for y in range(side)
        for x in range(side)
    ]
    perm = sorted(range(side * side), key=lambda row: -len(rows[row]))
    bounds = [len(rows[perm[first]]) for first in range(0, side * side, 32)]
    ptr = np.concatenate(
        [[0], np.cumsum([32 * sum(bound > k for bound in bounds) for k in range(25)])]
    )
    assert workload.sizes()["data"] == 4 * ptr[-1]

    def launch() -> Iterator[Block]:
        for first in range(0, side * side, 192):
            block = Block(trace)
            for ix in range(first, min(side * side, first + 192)):
                for k in range(bounds[ix // 32]):
                    block.use("data", int(ptr[k]) + ix)
                    block.use("indices", int(ptr[k]) + ix)
                    row = rows[perm[ix]]
                    block.use("x", row[k] if k < len(row) else 0)
                block.use("perm", ix)
                block.use("Ax", perm[ix], write=True)
            yield block

    check(trace, [launch(), launch()])


@pytest.mark.slow
def test_btree() -> None:
    workload, trace = small("cppe-B+T", page=1024, bytes=2_000_000)
    keys, levels = workload.keys, grown_tree(workload.keys).levels
    assert len(levels) == 3
    # the nodes as lists of the least key below each of their entries, level by level
    nodes = [[list(range(128 * i, 128 * i + 128)) for i in range(levels[-1])]]
    nodes[0][-1] = list(range(128 * (levels[-1] - 1), keys))
    for level in (1, 0):
        below = [entries[0] for entries in nodes[0]]
        cut = [below[128 * i : 128 * i + 128] for i in range(levels[level] - 1)]
        nodes.insert(0, [*cut, below[128 * (levels[level] - 1) :]])
    ranges, queries = read(trace)
    first_page = {o.name: o.first_page for o in trace.objects}

    def walked(key: int) -> set[int]:
        """Return the pages of the tree, from the root to a leaf."""
        pages, before = set(), 0
        for level in nodes:
            number = max(i for i, entries in enumerate(level) if entries[0] <= key)
            begin = 2068 * (before + number)
            slot = max(i for i, entry in enumerate(level[number]) if entry <= key) + (
                level is nodes[-1]
            )
            for low, high in (
                (begin + 4 * 258, begin + 4 * 514),
                (begin + 4 + 4 * slot, begin + 8 + 4 * slot),
            ):
                pages |= set(range(low // 1024, (high - 1) // 1024 + 1))
            before += len(level)
        return pages

    wanted = np.random.default_rng((1, 1)).integers(keys, size=queries.starts.size - 1)
    for bid, (key, touches) in enumerate(zip(wanted, queries.blocks(), strict=True)):
        assert {
            page - first_page["knodes_k"] for page, _, _, r in touches if r == btree._NODES_K
        } == walked(key)
        places = {
            "records": 4 * key,
            "currKnode_k": 8 * bid,
            "offset_k": 8 * bid,
            "keys": 4 * bid,
            "ans": 4 * bid,
        }
        rest = {(page, write) for page, write, _, r in touches if r != btree._NODES_K}
        stored = {"currKnode_k", "offset_k", "ans"}
        loaded = {"currKnode_k", "records", "keys"}  # offset_k is stored before it is loaded
        assert rest == {
            (first_page[n] + at // 1024, write)
            for n, at in places.items()
            for write, names in enumerate((loaded, stored))
            if n in names
        }
    span = int(keys * 0.003)
    firsts = np.random.default_rng((1, 0)).integers(keys - span, size=ranges.starts.size - 1)
    for key, touches in zip(firsts, ranges.blocks(), strict=True):
        found = {page - first_page["knodes_j"] for page, _, _, r in touches if r == btree._NODES_J}
        assert found == walked(key) | walked(key + span)


@pytest.mark.slow
def test_hybridsort_moves_every_float_to_its_place() -> None:
    workload, trace = small("cppe-HYB", bytes=400_000)
    n = workload.n
    sort = hybridsort._filled(n, seed=1)
    blocks = -(-n // 4096)
    cursor = hybridsort._prefixed(sort.bucket, blocks) + 4 * sort.start[:-1]
    places: list[int] = []
    (launch,) = (launch for launch in read(trace) if launch.name == "bucketsort")
    for b, touches in enumerate(launch.blocks()):
        block, mine = Block(trace), cursor[b].copy()
        for i in range(1024):
            block.use("l_offsets", i)
            block.use("prefixoffsets", 1024 * b + i)
        for lane in range(32):
            for t in range(32 * b + lane, n, 32 * blocks):
                block.use("input", t)
                block.use("indice", t)
        for first in range(32 * b, n, 32 * blocks):
            for t in range(first, min(n, first + 32)):
                places.append(int(mine[sort.bucket[t]]))
                block.use("output", places[-1], write=True)
                mine[sort.bucket[t]] += 1
        assert {(p, w, r) for p, w, _, r in touches} == next(block.touches())
    held = np.bincount(sort.bucket, minlength=1024)
    expected = [4 * int(sort.start[k]) + i for k in range(1024) for i in range(held[k])]
    assert sorted(places) == expected


def test_hybridsort_counts_and_packs() -> None:
    workload, trace = small("cppe-HYB", bytes=300_000)
    n = workload.n
    sort = hybridsort._filled(n, seed=1)
    blocks = -(-n // 4096)
    launches = {launch.name: launch for launch in read(trace)}

    def histogram() -> Iterator[Block]:
        for b in range(64):
            block = Block(trace)
            for first in range(96):
                for t in range(96 * b + first, n, 96 * 64):
                    block.use("input", t)
            for i in range(1024):
                block.use("histogram", i, write=True)
            yield block

    def count() -> Iterator[Block]:
        for b in range(blocks):
            block = Block(trace)
            for lane in range(32):
                for t in range(32 * b + lane, n, 32 * blocks):
                    block.use("input", t)
                    block.use("indice", t, write=True)
            for i in range(1024):
                block.use("pivotpoints", i)
                block.use("prefixoffsets", 1024 * b + i, write=True)
            yield block

    def prefix() -> Iterator[Block]:
        for b in range(8):
            block = Block(trace)
            for t in range(128 * b, 128 * b + 128):
                for i in range(blocks):
                    block.change("prefixoffsets", 1024 * i + t)
                block.use("offsets", t, write=True)
            yield block

    def first() -> Iterator[Block]:
        for low in range(0, int(sort.start[-1]), 256):
            block = Block(trace)
            for four in range(low, min(int(sort.start[-1]), low + 256)):
                block.use("output", four, size=16)
                block.use("input", four, write=True, size=16)
            yield block

    def pack() -> Iterator[Block]:
        passes = sum(launch.name == "mergeSortPass" for launch in read(trace))
        source, target = ("input", "output") if passes % 2 == 0 else ("output", "input")
        for bucket in range(1024):
            held = int(sort.packed[bucket + 1] - sort.packed[bucket])
            nulls = 4 * int(sort.start[bucket + 1] - sort.start[bucket]) - held
            for low in range(0, sort.largest, 256):
                block = Block(trace)
                for i in range(low, min(held, low + 256)):
                    block.use(source, 4 * int(sort.start[bucket]) + nulls + i)
                    block.use(target, int(sort.packed[bucket]) + i, write=True)
                yield block

    for name, kernel in (
        ("histogram1024Kernel", histogram),
        ("bucketcount", count),
        ("bucketprefixoffset", prefix),
        ("mergeSortFirst", first),
        ("mergepack", pack),
    ):
        check_launch(launches[name], kernel())


def test_hybridsort_merges() -> None:
    workload, trace = small("cppe-HYB", bytes=2_000_000)
    sort = hybridsort._filled(workload.n, seed=1)
    passes = [launch for launch in read(trace) if launch.name == "mergeSortPass"]
    assert len(passes) == int(np.ceil(np.log2(sort.largest / 4)))
    lists = [
        set(range(o.first_page, o.first_page + -(-16 * int(sort.start[-1]) // 256)))
        for o in trace.objects[:2]
    ]
    for number, launch in enumerate(passes):
        for reference, pages in enumerate(lists):
            assert set(launch.page[launch.reference == reference]) == pages
            assert set(launch.write[launch.reference == reference]) == {
                int(reference != number % 2)
            }
    (pack,) = (launch for launch in read(trace) if launch.name == "mergepack")
    assert set(pack.reference[pack.write == 1]) == {1 - len(passes) % 2}


@pytest.mark.slow
def test_bfs_searches_all_it_can_reach() -> None:
    trace = program("cppe-BFS", Geometry(4096, 65536), bytes=1_000_000)
    offsets, targets = csr(trace.workload.made())
    levels, frontier, seen = (
        0,
        {int(next(p for p in range(len(offsets) - 1) if offsets[p + 1] > offsets[p]))},
        set(),
    )
    launches = read(trace)
    while frontier:
        seen |= frontier
        frontier = {int(t) for v in frontier for t in targets[offsets[v] : offsets[v + 1]]} - seen
        levels += 1
    # the search begins at another node of the same large component
    assert abs(len(launches) // 2 - levels) <= 2
    assert len(launches[0].blocks()) == -(-trace.workload.nodes // 512)
