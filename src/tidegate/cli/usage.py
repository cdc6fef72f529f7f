"""What Typer finds wrong with the words that were typed, said as everything else is: in one line,
with what was given.
"""

from __future__ import annotations

from typing import Any

from typer.exceptions import TyperException

_EXPECTED = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "greater_than_equal": "at least {ge}",
}


def explain(error: TyperException) -> str:
    """One line: what was given, what was expected, and whose help says more."""
    said = _wrong_value(error) or " ".join(error.format_message().split())
    context = getattr(error, "ctx", None)
    verb = context.command_path if context is not None else "tidegate"
    if said.startswith("Missing command") and context is not None:
        said = f"'{verb}' needs one of {', '.join(context.command.commands)}"
    return f"{said}{'' if said.endswith(('.', '?')) else '.'} See '{verb} --help'."


def _wrong_value(error: TyperException) -> str | None:
    """Of an option whose value could not be read: which, what it was, and what it should be."""
    option, errors = getattr(error, "param", None), getattr(error.__cause__, "errors", None)
    if option is None or errors is None:
        return None
    wrong: dict[str, Any] = errors()[0]
    name = option.get_error_hint().strip("'")
    if wrong["type"] not in _EXPECTED:
        return f"{name}: {wrong['msg'].removeprefix('Value error, ')}"
    return f"{name} {wrong['input']}: expected {_EXPECTED[wrong['type']].format(**wrong.get('ctx', {}))}"
