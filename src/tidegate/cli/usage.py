"""Typer's errors in one line, as all others are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from typer.exceptions import TyperException

from tidegate.errors import TidegateError

_EXPECTED = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
}


def explain(error: TyperException) -> str:
    """Return one line: what was given, what was expected, and the command with more help."""
    text = _wrong_value(error) or " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    verb = context.command_path if context is not None else "tidegate"
    if text.startswith("Missing command") and context is not None:
        text = f"'{verb}' needs one of {', '.join(context.command.commands)}"
    if text.startswith("No such command") and context is not None:
        text = f"{text} Known: {', '.join(context.command.commands)}"
    return f"{text}{'' if text.endswith(('.', '?')) else '.'} See '{verb} --help'."


def _wrong_value(error: TyperException) -> str | None:
    """Return the line for an option whose value could not be parsed."""
    option, errors = getattr(error, "param", None), getattr(error.__cause__, "errors", None)
    if option is None or errors is None:
        return None
    wrong: dict[str, Any] = errors()[0]
    name = option.get_error_hint().strip("'")
    if wrong["type"] not in _EXPECTED:
        return f"{name}: {wrong['msg'].removeprefix('Value error, ')}"
    expected = _EXPECTED[wrong["type"]].format(**wrong.get("ctx", {}))
    return f"{name} must be {expected}, got {wrong['input']}"


def refuse_repeated(command: Any, words: Sequence[str]) -> None:
    """Refuse an option with one value that is given twice: all but the last would be lost.

    ``words`` are those of the command line up to ``--``.
    """
    words = list(words[: words.index("--")] if "--" in words else words)
    while words and hasattr(command, "commands"):
        command = command.commands.get(words.pop(0), command)
    for option in getattr(command, "params", ()):
        if option.param_type_name != "option" or option.multiple or option.is_flag:
            continue
        given = Counter(_option(word, option.opts) for word in words)
        if given[True] > 1:
            name = max(option.opts, key=len)
            raise TidegateError(
                f"{name} must be given once, got it {given[True]} times; where several values are "
                f"allowed they have commas: {name} a,b"
            )


def _option(word: str, names: Sequence[str]) -> bool:
    """Return whether a word is one of these options, alone or as in --near=1GiB."""
    return word.startswith("-") and word.partition("=")[0] in names
