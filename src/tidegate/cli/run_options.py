"""Options that specify runs, the same for every verb: each is a field of ``RunSettings``.

@takes_settings("bytes", "scale", "near")
def verb(workload: Workload, settings: Settings) -> None: ...    # --bytes, --scale, --near
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from tidegate.errors import TidegateError
from tidegate.experiments.settings import all_settings, help_of
from tidegate.options import split_outside

if TYPE_CHECKING:
    from tidegate.trace.trace import Trace

Settings: TypeAlias = dict[str, Any]  # those that were given, by name
# the order in which --help shows them
RUN = (
    *("bytes", "scale", "near", "oversubscribe", "fits", "machine", "system", "eviction"),
    *("prefetch", "placement", "tiering", "middle", "flush", "geometry", "slots", "dirty_only"),
    *("pipelined", "observed", "samples", "checked"),
)
TRACE = ("bytes", "scale", "machine", "geometry")  # of verbs that need the trace alone
_MACHINE = "rtx3090-pcie4"  # where such a verb is given none

Workload = Annotated[
    str,
    typer.Argument(
        help="A workload such as matmul or 'zipf(skew=0.9)', or a trace file.", show_default=False
    ),
]
Placement = Annotated[str | None, typer.Option("--placement", help=help_of("placement"))]
GeometryText = Annotated[str | None, typer.Option("--geometry", help=help_of("geometry"))]
NearOrMachines = Annotated[
    str | None,
    typer.Option("--near", help="Near memory, e.g. 16GiB; by default the machine's own."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=1024, help="Processes here; by default at most one per core."
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option("--set", help="A variable of the program's source, e.g. n=4096; repeatable."),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Compute anew even if this very run is in the store.")
]


def find_trace(workload: str, settings: Settings) -> Trace:
    """Return the trace of a workload or file, for verbs that take the settings ``TRACE``."""
    from tidegate.experiments import RunSpec

    return RunSpec.from_settings(workload, {"machine": _MACHINE} | settings).trace()


def takes_settings(
    *names: str, several: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorator: put the options of these settings in place of a command's parameter ``settings``.

    ``several``: those that take a list with commas.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        options = {name: _option(name, name in several) for name in names}
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for parameter in signature.parameters.values():
            named = parameter.name == "settings"
            parameters += options.values() if named else [parameter]

        @functools.wraps(command)
        def with_settings(**given: Any) -> None:
            chosen = {name: given.pop(name) for name in names}
            command(settings=_read(chosen, several), **given)

        keyword = inspect.Parameter.KEYWORD_ONLY
        made: Any = with_settings
        made.__signature__ = signature.replace(
            parameters=[parameter.replace(kind=keyword) for parameter in parameters]
        )
        made.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_settings

    return decorate


def _option(name: str, several: bool) -> inspect.Parameter:
    """Return the parameter of a command that sets one setting; None is one not given."""
    field = next(f for f, _ in all_settings() if f.name == name)
    short = field.metadata["flag"]
    flags = [short] if short.startswith("--") else [f"--{name.replace('_', '-')}", short]
    kind = {"bool": bool, "int": int}.get(str(field.type).removesuffix(" | None"), str)
    text = f"{field.metadata['help'].removesuffix('.')}; several with commas." if several else ""
    option = typer.Option(*filter(None, flags), help=text or field.metadata["help"])
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, option],
    )


def _read(chosen: dict[str, Any], several: Collection[str]) -> Settings:
    """Return the settings that were given; ``--no-flush`` says that flush is False."""
    given = {name: value for name, value in chosen.items() if value is not None}
    if "flush" in given:
        given["flush"] = not given["flush"]
    return given | {n: split_option(n, given[n]) for n in several if n in given}


def split(text: str | None) -> list[str]:
    """Return the parts of a list written with commas; commas within brackets do not separate.

    >>> split("lrm, random(seed=1, x=2),mru")
    ['lrm', 'random(seed=1, x=2)', 'mru']
    """
    return list(filter(None, split_outside(text or "", ",")))


def split_option(option: str, text: str | None) -> list[str] | None:
    """Return the parts of an option's list, None if it is not given; refuse an empty list, and one
    that has a part twice.
    """
    if text is None:
        return None
    parts = split(text)
    if not parts:
        raise TidegateError(f"--{option} must name one or several, with commas, got '{text}'")
    for part in parts:
        if parts.count(part) > 1:
            raise TidegateError(f"--{option} has {part} twice, got '{text}'; give each once")
    return parts


def split_workloads(text: str) -> list[str]:
    """Return the workloads of a list with commas; a file with a comma in its name is one.

    >>> split_workloads("matmul,zipf(skew=0.9, touches=10)")
    ['matmul', 'zipf(skew=0.9, touches=10)']
    """
    return [text] if not split(text) or Path(text).is_file() else split(text)
