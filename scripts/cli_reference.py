"""The reference of the command line, from the program: ``python scripts/cli_reference.py``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import typer.main

from tidegate.cli import app


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every command with its words, groups before their members."""
    if words:
        yield " ".join(words), command
    for name, below in sorted(getattr(command, "commands", {}).items()):
        yield from commands(below, (*words, name))


def reference() -> str:
    """Return the page as Markdown."""
    parts = [
        "# The command line",
        "Generated from the program. `tidegate VERB --help` shows the same at a terminal; what the"
        " common options mean is in the [reference](index.md).",
    ]
    for words, command in commands(typer.main.get_command(app)):
        parts += [f"## tidegate {words}", *_sections(words, command)]
    return "\n\n".join(parts) + "\n"


def _sections(words: str, command: Any) -> Iterator[str]:
    prose, examples = _split(command.help or "")
    yield prose
    if examples:
        yield "```text\n" + "\n".join(examples) + "\n```"
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    rows = [(f"`{_metavar(p)}`", p.help) for p in arguments]
    rows += [(_names(p), p.help) for p in options if not p.hidden]
    if rows:
        yield "\n".join(["| | |", "|---|---|", *(f"| {a} | {_cell(b)} |" for a, b in rows)])
    if getattr(command, "commands", None):
        yield "Verbs: " + ", ".join(f"`tidegate {words} {n}`" for n in sorted(command.commands))


def _split(text: str) -> tuple[str, list[str]]:
    """Return the prose of a docstring, and the commands that it shows."""
    lines = inspect.cleandoc(text).splitlines()
    examples = [line for line in lines if line.startswith("tidegate ")]
    prose = "\n".join(line for line in lines if line not in examples)
    return _escaped(prose.strip()), examples


def _metavar(argument: Any) -> str:
    name = (argument.metavar or argument.name).strip("[].").upper()
    name = f"{name}…" if argument.nargs == -1 else name
    return name if argument.required else f"[{name}]"


def _names(option: Any) -> str:
    names = [*option.opts, *option.secondary_opts]
    shown = ", ".join(f"`{n}`" for n in sorted(names, key=len, reverse=True))
    default = option.default
    if option.is_flag or default in (None, (), "") or callable(default):
        return shown
    return f"{shown} (`{getattr(default, 'value', default)}`)"


def _cell(text: str | None) -> str:
    return _escaped(" ".join((text or "").split())).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Return prose that Markdown shows as it is."""
    return re.sub(r"([<>*_\[\]])", r"\\\1", text)


if __name__ == "__main__":
    print(reference(), end="")
