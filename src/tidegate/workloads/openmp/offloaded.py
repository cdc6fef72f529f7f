"""What the workloads of this folder share: a program's saved model, and regions that walk their objects in step.

A region's loop runs over elements; a block of the trace is as many of them as fill a page of the object they use most of.
Each access is a Stream (element i uses bytes i·each … of an object) or a Gather (element i uses some places anywhere).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegate.compiler.model import ProgramModel
from tidegate.compiler.plan import Plan, make_plan
from tidegate.compiler.saved import load
from tidegate.trace.build import SEGMENT_TOUCHES
from tidegate.trace.trace import Launch, Provenance, Segment
from tidegate.workloads.program import Space, Workload

THREADS = 256  # of a thread block: eight of them fill an SM of 2048
SECTOR = 32  # bytes: the least that a GPU takes from memory
GATHERED = 4  # touches that stand for all of a block's gathered accesses; more would only take longer to play


@dataclass(frozen=True)
class Stream:
    """Element i uses ``each`` bytes of an object from ``at + i * each`` on, where ``share`` of the elements do so at all."""

    object: str
    each: float
    at: float = 0
    write: bool = False
    share: float = 1.0
    together: float = 1.0  # neighbouring elements whose bytes lie in one sector


@dataclass(frozen=True)
class Gather:
    """Each element uses ``accesses`` places of an object, anywhere in it, a sector each."""

    object: str
    accesses: float
    write: bool = False


Access = Stream | Gather


@cache
def model_named(name: str) -> ProgramModel:
    """The analysis of an example program, as `tidegate compile --save` left it."""
    return load(Path(__file__).parent / "models" / f"{name}.json")


class Offloaded(Workload):
    """Base: ``program`` names the example, ``variables`` are the values its sizes and trip counts are formulas of."""

    provenance = Provenance.DERIVED
    program = ""

    def variables(self) -> Mapping[str, int]:
        """The program's variables at this size."""
        raise NotImplementedError

    def model(self) -> ProgramModel:
        return model_named(self.program)

    def plan(self) -> Plan:
        return make_plan(self.model(), self.variables())

    def sizes(self) -> dict[str, int]:
        given = self.variables()
        return {o.name: max(1, o.bytes.at(given)) for o in self.model().heap() if o.bytes is not None}


def region(space: Space, name: str, elements: int, accesses: Sequence[Access], seed: int = 0) -> Launch:
    """One launch of a region whose loop has so many elements."""
    heaviest = max((a.each for a in accesses if isinstance(a, Stream)), default=4.0)
    block = max(1, int(space.geometry.page / heaviest))
    return Launch(name, _walk(space, elements, block, accesses, seed), width=max(1, block // THREADS))


def _walk(space: Space, elements: int, block: int, accesses: Sequence[Access], seed: int) -> Iterator[Segment]:
    random = np.random.default_rng(seed)
    columns = sum(GATHERED if isinstance(a, Gather) else 1 for a in accesses)
    rows = max(1, SEGMENT_TOUCHES // columns)
    blocks = -(-elements // block)
    for first in range(0, blocks, rows):
        at = np.arange(first, min(first + rows, blocks), dtype=np.int64)
        parts = [
            _streamed(space, a, at, block, elements, random) if isinstance(a, Stream)
            else _gathered(space, a, at, block, elements, random)
            for a in accesses
        ]  # fmt: skip
        yield _segment(accesses, parts)


Part = tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]
"""Pages, which of them are touched, and bytes: a row per block."""


def _streamed(
    space: Space, a: Stream, at: NDArray[np.int64], block: int, elements: int, random: np.random.Generator
) -> Part:
    page, owner = space.geometry.page, space[a.object]
    ends = np.minimum(np.stack([at, at + 1]) * block, elements) * a.each + a.at
    before, index = np.clip((ends - 1) // page, 0, owner.pages - 1).astype(np.int64)
    new = (index != before) | (at == 0)  # a page that several blocks use is touched by the first of them
    used = np.minimum(page, owner.bytes - index * page)
    if a.share < 1.0:
        here = max(1.0, page / a.each)  # elements that have their bytes in this page
        new &= random.random(len(at)) < -np.expm1(here * np.log1p(-a.share))
        dense = -np.expm1(max(a.together, SECTOR / a.each) * np.log1p(-a.share))
        used = np.maximum(SECTOR, (used * dense).astype(np.int64))
    return owner.first_page + index[:, None], new[:, None], used[:, None]


def _gathered(
    space: Space, a: Gather, at: NDArray[np.int64], block: int, elements: int, random: np.random.Generator
) -> Part:
    owner = space[a.object]
    here = np.minimum((at + 1) * block, elements) - at * block
    total = here * a.accesses
    touches = np.minimum(GATHERED, np.ceil(total)).astype(np.int64)
    drawn = random.random(len(at)) < total  # a block with less than one access has it now and then
    pages = owner.first_page + random.integers(0, owner.pages, (len(at), GATHERED))
    used = np.maximum(1, total * SECTOR / np.maximum(touches, 1)).astype(np.int64)
    new = (np.arange(GATHERED) < touches[:, None]) & drawn[:, None]
    return pages, new, np.broadcast_to(used[:, None], pages.shape)


def _segment(accesses: Sequence[Access], parts: Sequence[Part]) -> Segment:
    pages, new, used = (np.concatenate(columns, axis=1) for columns in zip(*parts, strict=True))
    widths = [part[0].shape[1] for part in parts]
    reference = np.repeat(np.arange(len(accesses), dtype=np.int16), widths)
    written = np.repeat(np.array([a.write for a in accesses], np.uint8), widths)
    starts = np.concatenate([[0], np.cumsum(new.sum(axis=1))])
    return Segment(
        starts, pages[new], np.broadcast_to(written, new.shape)[new], used[new], np.broadcast_to(reference, new.shape)[new]
    )
