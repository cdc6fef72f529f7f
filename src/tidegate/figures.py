"""How figures are written: PNG, SVG, or a page of HTML; whole, or not at all."""

from __future__ import annotations

import html
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.errors import TidegateError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".html")
# Okabe and Ito's colours: told apart by everybody
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8c8c8c", "#000000")


def check_output(path: Path, formats: tuple[str, ...] = FORMATS) -> None:
    """Say at once, before any work, if ``path`` cannot be written."""
    if path.suffix.lower() not in formats:
        raise TidegateError(
            f"cannot write {path}: expected a name that ends in {', '.join(formats)}"
        )
    if not path.parent.is_dir():
        raise TidegateError(f"cannot write {path}: there is no folder {path.parent}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise TidegateError(f"cannot write {path}: it is not writable")


def save_figure(figure: Figure, path: Path, title: str) -> None:
    """Write a figure as PNG, SVG or a page of HTML; whole, or not at all."""
    check_output(path)
    data = io.BytesIO()
    if path.suffix.lower() == ".html":
        drawing = io.StringIO()
        figure.savefig(drawing, format="svg")
        svg = drawing.getvalue()
        page = _PAGE.format(title=html.escape(title), svg=svg[svg.index("<svg") :])
        data.write(page.encode())
    else:
        figure.savefig(data, format=path.suffix[1:].lower(), dpi=150)
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(data.getvalue())
        os.replace(partial, path)
    except OSError as error:
        raise TidegateError(f"cannot write {path}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }}
svg {{ max-width: 100%; height: auto }}</style>
<h1>{title}</h1>
{svg}
</html>
"""
