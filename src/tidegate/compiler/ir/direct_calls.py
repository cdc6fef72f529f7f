"""Calls that are not written as calls of the function they run, made direct so that it is inlined:
a thread's function (`pthread_create`), and a function that was declared without parameters (K&R).
"""

from __future__ import annotations

import re

from tidegate.compiler.ir.layout import split
from tidegate.compiler.ir.module import Module, Printed, parse

_SYMBOL = r'@("[^"\n]+"|[\w.$-]+)'
_THREAD = re.compile(
    rf"^( +)(?:%([\w.$-]+) = )?(?:tail )?call [^\n@]*@pthread_create\([^,\n]+, [^,\n]+, "
    rf"ptr (?:[a-z]+ )*{_SYMBOL}, ([^\n]*?)\)([^\n)]*)$",
    re.M,
)
_UNDECLARED = re.compile(
    r"^( +)(?:%([\w.$-]+) = )?(?:tail )?call ([\w ]*?)(\w+) \([^()\n]*\.\.\.\) "
    rf"{_SYMBOL}\(([^\n]*?)\)"
    r"((?: #\d+)?(?:, ![^\n]*)?)$",
    re.M,
)
_DEFINED = re.compile(rf"^define [^\n@]*?(\w+) {_SYMBOL}\(([^\n]*)\)[^\n()]*\{{", re.M)


def with_direct_calls(module: Module, name: str) -> tuple[Module, list[str]]:
    """Return the module with direct calls, and the threads' functions."""
    printed = Printed(module)
    defined = {f: (type_, _types(args)) for type_, f, args in _DEFINED.findall(printed.text)}
    threads: list[str] = []

    def started(call: re.Match[str]) -> str:
        indent, result, function, argument, rest = call.groups()
        if function not in defined:
            return call[0]
        threads.append(function.strip('"'))
        made = f"{indent}call ptr @{function}({argument}){rest}"
        return f"{made}\n{indent}%{result} = add i32 0, 0" if result else made

    def declared(call: re.Match[str]) -> str:
        indent, result, attributes, type_, function, arguments, rest = call.groups()
        own = defined.get(function)
        if own is None or own[1] != _types(arguments) or own[0] not in (type_, "void"):
            return call[0]
        made = f"call {attributes}{own[0]} @{function}({arguments}){rest}"
        if own[0] == "void":
            made = f"call void @{function}({arguments}){rest}"
            return indent + made + (f"\n{indent}%{result} = add {type_} 0, 0" if result else "")
        return f"{indent}%{result} = {made}" if result else indent + made

    text = printed.rewritten(lambda _, text: _UNDECLARED.sub(declared, _THREAD.sub(started, text)))
    return (module if text == printed.text else parse(text, name)), threads


def _types(arguments: str) -> list[str]:
    """Return the types of arguments or parameters, without attributes and names."""
    return [part.split()[0] for part in split(arguments)]
