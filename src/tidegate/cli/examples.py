"""tidegate examples: the programs of the documentation, to copy and change."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli import output
from tidegate.cli.usage import Verbs
from tidegate.errors import TidegateError, UnknownName

app = Verbs(
    help="List or copy the programs that the documentation uses.", invoke_without_command=True
)
Folder = Annotated[
    Path, typer.Argument(help="The folder to copy to; it is made if need be.", show_default=False)
]
Names = Annotated[
    list[str] | None,
    typer.Argument(
        help="Which of 'tidegate examples'; all by default.",
        metavar="[NAME]...",
        show_default=False,
    ),
]


@app.callback()
def show(
    context: typer.Context, as_json: output.AsJson = False, as_csv: output.AsCsv = False
) -> None:
    """List the examples.

    tidegate examples
    """
    if context.invoked_subcommand is not None:
        return
    output.check(as_json, as_csv, None)
    found = {name: _said(path) for name, path in examples().items()}
    if as_json:
        output.print_json(found)
    elif as_csv:
        output.print_csv([{"example": name, "what": said} for name, said in found.items()])
    else:
        output.print_table(["example", "what it is"], list(found.items()), left=2)


@app.command("copy")
def copy(folder: Folder, names: Names = None) -> None:
    """Copy examples to a folder. Nothing is copied if a file of that name is there.

    tidegate examples copy tidegate-examples
    """
    found = examples()
    for name in names or ():
        if name not in found:
            raise UnknownName("example", name, found)
    chosen = {name: found[name] for name in names or found}
    if folder.is_file():
        raise TidegateError(f"{folder} is a file; give a folder")
    for name in chosen:
        if (folder / name).exists():
            raise TidegateError(f"{folder / name} exists; give another folder, or remove it first")
    for name, path in chosen.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
    output.print_text(f"{len(chosen)} files copied to {folder}")


def examples() -> dict[str, Path]:
    """Return the examples by name: files of an installed package, or of a checkout."""
    package = Path(__file__).parent.parent
    for folder in (package / "examples", package.parent.parent / "examples"):
        if folder.is_dir():
            files = (f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
            return {str(f.relative_to(folder)): f for f in sorted(files)}
    raise TidegateError(
        "the examples are missing here; install Tidegate from a wheel or a checkout"
    )


def _said(path: Path) -> str:
    """Return what a file says of itself first: up to a full stop or colon."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = json.loads(text)["cells"][0]["source"][0]
    elif path.suffix == ".md":
        text = text.splitlines()[0]
    text = " ".join(text[:400].lstrip("#/*\"' \n").split())
    return re.split(r"[.:](?: |$)|, in the shape of|\"\"\"| \|", text)[0].strip()
