"""How to use the command: what it shows alone, and mistakes of usage in one line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from tidegate.cli import output
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


@dataclass
class Debugging:
    """Whether an error shows its traceback."""

    wanted: bool = False


class VerbCommand(TyperCommand):
    """A command that takes ``--debug`` among its own words, and refuses an option with one value
    that is given twice: all but the last would be lost.
    """

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        parser.add_option(None, ["--debug"], "--debug", "store_const", const=True)  # type: ignore[arg-type]
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        found, _, order = self.make_parser(ctx).parse_args(args=list(args))
        if "--debug" in found and isinstance(ctx.obj, Debugging):
            ctx.obj.wanted = True
        for option, times in Counter(filter(None, order)).items():
            if times > 1 and option.nargs == 1 and not (option.multiple or option.is_flag):
                name = max(option.opts, key=len)
                raise TidegateError(
                    f"{name} must be given once, got it {times} times; where several values are "
                    f"allowed they have commas: {name} a,b"
                )
        return super().parse_args(ctx, args)


class Verbs(typer.Typer):
    """A group of such commands."""

    def command(self, name: str | None = None, **settings: Any) -> Any:
        return super().command(name, **{"cls": VerbCommand, **settings})


USES = (
    ("race policies on a simulated GPU", "tidegate compare matmul --oversubscribe 50%"),
    ("record your own program", "tidegate record torch train.py -o step.parquet"),
    ("get advice: does it fit, what to do", "tidegate advise step.parquet --near 24GiB"),
    ("run a script in less RAM", "tidegate live run --near 4GiB script.py"),
    ("look into runs on a web page", "tidegate studio"),
)


def welcome() -> None:
    """Print what a newcomer may type first."""
    from tidegate import __version__

    output.print_text(f"Tidegate {__version__}: run programs larger than their fast memory")
    output.print_table(["to", "type"], USES, left=2)
    output.print_text(
        "tidegate --help lists every verb, tidegate VERB --help its options.\n"
        "tidegate doctor says what this machine can do; tidegate examples copy DIR copies programs "
        "to begin with."
    )
