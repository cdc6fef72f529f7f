"""Typer's errors in one line, as all others are."""

from __future__ import annotations

from typing import Any

from typer.exceptions import TyperException

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
