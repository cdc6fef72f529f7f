"""Numbers that a program keeps in memory: in globals, structures, and variables whose address is
taken, as by `sscanf(v, "%d", &n)`.

A size that is loaded from there is a variable of the source, under that variable's name. Where
nothing but one value is ever stored, the size is that value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from tidegate.compiler.analysis.points_to import Location, Origin, PointsTo
from tidegate.compiler.ir.calls import CONFIGURES, LAUNCHING
from tidegate.compiler.ir.module import Body, Instruction, Value, key

_HARMLESS = ("llvm.lifetime", "llvm.dbg", "llvm.assume", *CONFIGURES, *LAUNCHING)
_MENTIONED = re.compile(r'@(?:"([^"\n]+)"|([\w.$-]+))')
_LOAD = re.compile(r"^ +%[^\n]* = load [^\n]*$", re.M)
_NUMBER = re.compile(
    r'^@(?:"([^"\n]+)"|([\w.$-]+)) = [^\n]*?(?:global|constant) i\d+ (-?\d+)', re.M
)


class Memory:
    """What the memory that one function uses may hold."""

    def __init__(self, body: Body, points: PointsTo):
        self._body, self.points = body, points

    def place(self, load: Instruction) -> Location | None:
        """Return the one place that an instruction loads from; None if there may be several."""
        if load.opcode != "load" or load.ref.type.is_pointer:
            return None
        places = self.points.targets(load.operands[0])
        return next(iter(places)) if len(places) == 1 else None

    def only_value(self, origin: Origin, offset: int) -> Value | int | None:
        """Return the value that is always found at a place; None if there may be several."""
        if origin.kind not in ("stack", "global") or origin in self._written_elsewhere:
            return None
        stored = {key(v): v for v in self.points.written((origin, offset))}
        if origin.kind == "global" and not stored and offset == 0:
            return self._initial.get(origin.name)
        return next(iter(stored.values())) if len(stored) == 1 and origin.kind == "stack" else None

    def follow(self) -> None:
        """Note at the function what its loads of numbers always find, and where that changes."""
        changes: dict[Origin, set[str]] = {}
        for i in self._body:
            for origin in self._changed_by(i):
                changes.setdefault(origin, set()).add(i.block)
        for i in self._body:
            place = self.place(i)
            if place is None or place[1] is None:
                continue
            self._body.changed_in[i.key] = changes.get(place[0], set())
            value = self.only_value(place[0], place[1])
            if value is not None and (isinstance(value, int) or key(value) != i.key):
                self._body.kept[i.key] = value

    def _changed_by(self, i: Instruction) -> Iterator[Origin]:
        yield from self._given_away(i)
        if i.opcode == "store":
            yield from (origin for origin, _ in self.points.targets(i.operands[1]))

    def instruction(self, value: Value) -> Instruction | None:
        """Return the instruction that a value is the result of."""
        return self._body.by_key.get(key(value))

    def alike(self, value: str) -> list[str]:
        """Return the names of a value and its conversions to other widths."""
        i = self.named.get(value)
        return [value, *(self._body.converted.get(i.key, ()) if i is not None else ())]

    @cached_property
    def named(self) -> dict[str, Instruction]:
        """The instructions by their results' names."""
        return {i.ref.name: i for i in self._body if i.ref.name}

    @cached_property
    def stored(self) -> dict[int, list[Location]]:
        """The places that a value is stored at, by the value's key."""
        found: dict[int, list[Location]] = {}
        for i in self._body:
            if i.opcode == "store":
                for place in sorted(self.points.targets(i.operands[1]), key=repr):
                    found.setdefault(key(i.operands[0]), []).append(place)
        return found

    @cached_property
    def _written_elsewhere(self) -> set[Origin]:
        """The memory that a called function may write, and that at which no single place is
        written.
        """
        found = {Origin("global", name) for name in self._mentioned()}
        pending = [o for i in self._body for o in self._given_away(i)]
        while pending:
            origin = pending.pop()
            if origin in found:
                continue
            found.add(origin)
            for offset in self.points.offsets_held(origin):
                pending += (o for o, _ in self.points.at((origin, offset)))
        return found

    def _given_away(self, i: Instruction) -> Iterator[Origin]:
        if i.opcode == "store":
            yield from (o for o, at in self.points.targets(i.operands[1]) if at is None)
        elif i.opcode in ("call", "invoke") and not i.callee.startswith(_HARMLESS):
            pointers = (a for a in i.arguments if a.type.is_pointer)
            yield from (o for pointer in pointers for o, _ in self.points.targets(pointer))

    def _mentioned(self) -> set[str]:
        """Return the globals that other functions do more with than load them."""
        texts = self._body.printed.functions.items()
        others = (_LOAD.sub("", text) for name, text in texts if name != self._body.name)
        return {a or b for text in others for a, b in _MENTIONED.findall(text)}

    @cached_property
    def _initial(self) -> dict[str, int]:
        """The first values of globals that are numbers."""
        return {a or b: int(n) for a, b, n in _NUMBER.findall(self._body.printed.text)}
