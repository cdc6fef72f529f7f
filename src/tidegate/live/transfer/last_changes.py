"""The last changes of users' files: written when a program has ended and left its arena open.

``np.memmap`` keeps what a program wrote, whatever ends the program. So does an arena: its memory
outlives the program, and there is no pager any more that could move a page. A page may be in
several places, also in parts; each is written over the older one.

    middle tier, if the file's copy is older ──▶ copy of a sampled page ──▶ near memory
"""

from __future__ import annotations

import os
from typing import Any

from tidegate import units
from tidegate.live.arena.setup import ArenaSetup
from tidegate.live.pager.regions import bits, runs, span
from tidegate.live.transfer.middle import Middle
from tidegate.live.transfer.page_state import SLOTS, PageFlags, SampledPages
from tidegate.live.transfer.store import Backing, Buffer
from tidegate.live.transfer.userfault import SMALL_PAGE, data_pages


class LastChanges:
    """The dirty pages of an arena without a program and without a pager."""

    def __init__(self, setup: ArenaSetup):
        self._page, self._region, self._near = setup.page, setup.region, setup.memory
        self._flags = PageFlags(setup.flags, setup.pages)
        self._copies = SampledPages(setup.copies, setup.page, SLOTS)
        self._middle: Middle | None = None
        if setup.middle >= 0:
            self._middle = Middle(setup.middle, setup.pages, setup.page, setup.middle_bytes)
        self._buffer = Buffer(setup.region).view

    def write(self, objects: dict[int, dict[str, Any]], files: dict[int, tuple[int, int]]) -> str:
        """Write all changes of files; return a line on it, which is empty if there were none."""
        written, names, failed = 0, set[str](), dict[str, str]()
        for ident, (direct, plain) in files.items():
            o = objects[ident]
            backing = Backing(direct, plain, name=o["name"], **o["backing"])
            if not backing.writable:
                continue
            if self._middle is not None:
                self._middle.recover(o["first_page"], -(-o["bytes"] // self._page))
            size = 0
            for at in range(0, o["bytes"], self._region):
                try:
                    size += self._write_region(o["first_page"] + at // self._page, backing, at)
                except OSError as error:  # the rest may be written
                    failed[o["name"]] = error.strerror or str(error)
            if size:
                os.fsync(plain)
                written, names = written + size, names | {o["name"]}
        said = [f"{name} cannot be written: {why}" for name, why in failed.items()]
        if written:
            said.insert(0, f"wrote {units.show_size(written)} to {', '.join(sorted(names))}")
        return "; ".join(said)

    def _write_region(self, first: int, backing: Backing, at: int) -> int:
        """Write the dirty pages of the region whose first page is ``first``; return its bytes."""
        page, ppr = self._page, self._region // self._page
        dirty, older = self._flags.dirty(first, ppr), 0
        for i in range(ppr):
            number, middle = first + i, self._middle
            if middle is not None and number in middle and middle.is_newer(number):
                middle.get(number, self._buffer)
                backing.write(at + i * page, self._buffer[:page])
                older |= 1 << i
        for i in (i for i in bits(dirty) if first + i in self._copies):
            backing.write(at + i * page, self._copies.get(first + i)[0])
            older |= 1 << i
        if self._flags.in_doubt(first, ppr):  # the file is right, and near memory may be zeros
            return older.bit_count() * page
        parts, newest = page // SMALL_PAGE, 0
        near = data_pages(self._near, first * page, self._region)
        for i in bits(dirty):
            newest |= near & span(i * parts, (i + 1) * parts)
        for small, n in runs(newest):
            view = self._buffer[: n * SMALL_PAGE]
            os.preadv(self._near, [view], first * page + small * SMALL_PAGE)
            backing.write(at + small * SMALL_PAGE, view)
        return older.bit_count() * page + newest.bit_count() * SMALL_PAGE
