"""LLVM IR read through llvmlite, and a few things that llvmlite lacks.

llvmlite gives instructions and operands, but no uses, successors or metadata, nor the instruction
that an operand is. So values are identified by their address (`key`), and control flow is read from
the terminators.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import llvmlite.binding as llvm

from tidegate.compiler.ir.layout import struct_bodies
from tidegate.errors import TidegateError

Value = Any  # llvmlite.binding.ValueRef; llvmlite has no types
Module = Any

_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
# -O0 marks every function with noinline and optnone, which forbids inlining.
# A GPU's processor would stop LLVM, which is asked to optimise for this machine.
_HINDRANCES = re.compile(r'\b(noinline|optnone)\b ?|"(target|tune)-(cpu|features)"="[^"]*" ?')
CONVERSIONS = {"sext", "zext", "trunc", "freeze"}
"""Instructions whose result is the same number as their operand."""

_CALLS = ("call", "invoke", "callbr")
_FUNCTION = re.compile(r'^define [^\n]*?@(?:"([^"\n]+)"|([\w.$-]+))\(.*?^}', re.M | re.S)
_RESULT = re.compile(r'^(  %(?:"([^"\n]+)"|([\w.$-]+)) = .*)$', re.M)


def key(value: Value) -> int:
    """Return the address of an LLVM value, which identifies it across llvmlite's objects."""
    return ctypes.cast(value._ptr, ctypes.c_void_p).value or 0


@cache
def _context() -> Any:
    """Return the one context of all modules, separate from Numba's and never freed.

    A module must not outlive its context, but Python's collector may free both in either order.
    """
    return llvm.create_context()


def parse(given: str | bytes, name: str) -> Module:
    """Return a module from text or bitcode, with a name for every block and value, and without
    attributes that forbid inlining.
    """
    try:
        if isinstance(given, bytes) and given.startswith(_BITCODE):
            given = str(llvm.parse_bitcode(given, _context()))
        text = given.decode() if isinstance(given, bytes) else given
        lines = (
            _HINDRANCES.sub("", line) if line.startswith("attributes #") else line
            for line in text.split("\n")
        )
        module = llvm.parse_assembly("\n".join(lines), _context())
    except (RuntimeError, UnicodeDecodeError) as error:
        said = str(error).strip().split("\n")
        # the others are the line of the IR and a caret
        said = [line for line in said if "error: " in line] or said
        what = said[-1].replace("<string>:", "line ")
        raise TidegateError(
            f"'{name}' is not LLVM IR that LLVM {llvm.llvm_version_info[0]} can read ({what}); "
            "give .ll or .bc files from clang 16 to 22"
        ) from None
    run_passes(module, "instruction_namer")  # names identify blocks
    return module


def run_passes(module: Module, *names: str) -> None:
    """Run LLVM's passes of these names, in llvmlite's spelling, in place."""
    # llvmlite runs no pass without a machine; which one does not matter
    llvm.initialize_native_target()
    machine = llvm.Target.from_default_triple().create_target_machine()
    passes = llvm.create_new_module_pass_manager()
    for name in names:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


class Printed:
    """A module's text, printed once.

    LLVM numbers all metadata of a module whenever it prints a part of it, so printing instructions
    one by one takes minutes where the whole takes a moment.
    """

    def __init__(self, module: Module):
        self.text = str(module)
        self.structs: dict[str, str] = struct_bodies(self.text)

    @cached_property
    def functions(self) -> dict[str, str]:
        """The text of each function with a body, by its name."""
        return {found[1] or found[2]: found[0] for found in _FUNCTION.finditer(self.text)}

    def rewritten(self, change: Callable[[str, str], str]) -> str:
        """Return the module's text with what `change` makes of each function's name and text."""
        return _FUNCTION.sub(lambda found: change(found[1] or found[2], found[0]), self.text)


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction, with copies of what is read most often."""

    ref: Value
    key: int
    opcode: str
    operands: tuple[Value, ...]
    block: str
    callee: str  # the function called; "" for a call through a pointer, and if this is no call
    body: Body

    @property
    def text(self) -> str:
        """Its text as LLVM prints it, which alone shows a GEP's type or a comparison's kind; ""
        for an instruction without a result.
        """
        return self.body.lines.get(self.ref.name, "")

    @property
    def arguments(self) -> tuple[Value, ...]:
        """A call's arguments; an invoke's two destinations are not among them."""
        return tuple(o for o in self.operands[:-1] if o.value_kind != llvm.ValueKind.basic_block)

    def successors(self) -> tuple[str, ...]:
        """Return the names of the blocks that may follow, in the order of the source: for a
        conditional branch true, then false.
        """
        blocks = tuple(o.name for o in self.operands if o.value_kind == llvm.ValueKind.basic_block)
        return blocks[::-1] if self.opcode == "br" else blocks


class Body:
    """A function's instructions, by key and by block.

    `printed`: the text of its module, if many functions are read.
    """

    def __init__(self, function: Value, printed: Printed | None = None):
        self.name: str = function.name
        self.printed = printed or Printed(function.module)
        self.structs = self.printed.structs
        self.parameters: tuple[Value, ...] = tuple(function.arguments)
        self.blocks: dict[str, list[Instruction]] = {}
        for block in function.blocks:
            name = block.name
            self.blocks[name] = [self._instruction(i, name) for i in block.instructions]
        self.by_key: dict[int, Instruction] = {i.key: i for i in self}
        self.kept: dict[int, Value | int] = {}
        """What loads always find, by their keys, as far as memory was followed."""
        self.changed_in: dict[int, set[str]] = {}
        """The blocks in which memory may change that is loaded, by the loads' keys, likewise."""

    def _instruction(self, i: Value, block: str) -> Instruction:
        opcode, operands = i.opcode, tuple(i.operands)
        callee = ""
        if opcode in _CALLS and operands[-1].value_kind == llvm.ValueKind.function:
            callee = operands[-1].name
        return Instruction(i, key(i), opcode, operands, block, callee, self)

    @cached_property
    def lines(self) -> dict[str, str]:
        """The text of each instruction with a result, by the result's name."""
        text = self.printed.functions.get(self.name, "")
        return {(a or b): line.strip() for line, a, b in _RESULT.findall(text)}

    @cached_property
    def converted(self) -> dict[int, list[str]]:
        """The names of a value's conversions to other widths, by the value's key."""
        found: dict[int, list[str]] = {}
        for i in self:
            if i.opcode in CONVERSIONS:
                found.setdefault(key(i.operands[0]), []).append(i.ref.name)
        return found

    def __iter__(self) -> Any:
        return (i for instructions in self.blocks.values() for i in instructions)


def is_null(value: Value) -> bool:
    """Return whether a value is a null pointer."""
    return bool(value.value_kind == llvm.ValueKind.constant_pointer_null)


def constant_int(value: Value) -> int | None:
    """Return the number of an integer constant, with its sign; None for anything else."""
    if value.value_kind != llvm.ValueKind.constant_int:
        return None
    # llvmlite reads the sign of the whole 64-bit word: i32 -1 would be 4294967295
    return in_bits(int(value.get_constant_value()), int_bits(value))


def int_bits(value: Value) -> int:
    """Return the width of an integer value in bits."""
    return int(str(value.type).strip().removeprefix("i"))


def in_bits(number: int, bits: int, signed: bool = True) -> int:
    """Return a number as a register of so many bits holds it. A single bit has no sign.

    >>> in_bits(2**32 - 1, 32), in_bits(-1, 8, signed=False), in_bits(1, 1)
    (-1, 255, 1)
    """
    least = -(1 << bits - 1) if signed and bits > 1 else 0
    return (number - least) % (1 << bits) + least


def constant_array(module: Module, name: str) -> tuple[int, ...] | None:
    """Return the numbers in a constant global array of integers; None if it is no such array."""
    # get_global_variable does not find private names
    found = next((g for g in module.global_variables if g.name == name), None)
    text = str(found).split("=", 1)[1] if found is not None else ""
    shape = re.search(r"constant \[(\d+) x i\d+\] (zeroinitializer|\[(.*?)\])", text)
    if shape is None:
        return None
    if shape[2] == "zeroinitializer":
        return (0,) * int(shape[1])
    return tuple(int(n) for n in re.findall(r"i\d+ (-?\d+)", shape[3]))


OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_PREDICATE = re.compile(r"\bicmp (?:samesign )?([su]?)(eq|ne|lt|le|gt|ge)\b")


def predicate_of(comparison: Instruction) -> tuple[str, str] | None:
    """Return (sign, kind) of an icmp: "s", "u" or "", and "lt", "eq" and so on."""
    found = _PREDICATE.search(comparison.text)
    return (found[1], found[2]) if found is not None else None
