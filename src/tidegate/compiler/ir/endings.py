"""A program that ends in `exit()`: such a call is a return of `main`.

LLVM takes a block that does not return for one that is hardly ever reached. If that is how `main`
ends, all that leads there seems unlikely, too: loops of launches would turn a billion times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tidegate.compiler.ir.calls import LAUNCHING
from tidegate.compiler.ir.loops import reachable
from tidegate.compiler.ir.module import Body, Module, Printed, constant_int, parse

_EXITS = ("exit", "_exit", "_Exit", "quick_exit")
_FAILS = ("abort", "__assert_fail", "_ZSt9terminatev", "__cxa_throw")


def with_returns(module: Module, name: str) -> tuple[Module, Printed, Body]:
    """Return the module with returns where `main` ends otherwise, its text, and `main`."""
    printed = Printed(module)
    main = Body(module.get_function("main"), printed)
    ends = _ends(main)
    if not ends:
        return module, printed, main
    text = printed.rewritten(lambda f, text: _returning(text, ends) if f == "main" else text)
    module = parse(text, name)
    printed = Printed(module)
    return module, printed, Body(module.get_function("main"), printed)


def _ends(main: Body) -> set[str]:
    """Return the blocks that end the program after launches from which no return is reached: those
    that tell success, or else those that tell no failure, or else all.
    """
    after = {name: block[-1].successors() if block else () for name, block in main.blocks.items()}
    launching = {i.block for i in main if i.callee in LAUNCHING}
    behind = {block: reachable(block, after) | {block} for block in launching}
    stuck = [blocks for blocks in behind.values() if all(_last(main, b) != "ret" for b in blocks)]
    dead = {b for blocks in stuck for b in blocks if _last(main, b) == "unreachable"}
    statuses = {block: _status(main, block) for block in dead}
    return _of(statuses, ("success",)) or _of(statuses, ("success", "unknown")) or dead


def _of(statuses: dict[str, str], wanted: Iterable[str]) -> set[str]:
    return {block for block, status in statuses.items() if status in wanted}


def _last(main: Body, block: str) -> str:
    return main.blocks[block][-1].opcode if main.blocks[block] else ""


def _status(main: Body, block: str) -> str:
    """Return what a block that does not return tells about the program: success, failure, or
    unknown.
    """
    calls = [i for i in main.blocks[block] if i.opcode == "call"]
    ending = next((i for i in reversed(calls) if i.callee in (*_EXITS, *_FAILS)), None)
    if ending is None:
        return "unknown"
    failed = ending.callee in _FAILS or constant_int(ending.arguments[0]) not in (0, None)
    return "failure" if failed else "success"


def _returning(text: str, ends: set[str]) -> str:
    """Return the text of `main` in which these blocks return."""
    found = re.match(r"define [^\n]*?(\w+) @main\(", text)
    value = "ret void" if found is None or found[1] == "void" else f"ret {found[1]} 0"
    for block in ends:
        label = rf'(^"?{re.escape(block)}"?:.*?^  )unreachable'
        text = re.sub(label, rf"\g<1>{value}", text, count=1, flags=re.M | re.S)
    return text
