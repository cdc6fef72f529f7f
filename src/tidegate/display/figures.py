"""Figures as files: PNG, SVG, or a page of HTML."""

from __future__ import annotations

import base64
import html
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.errors import TidegateError
from tidegate.files import check_place, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".html")
# Okabe and Ito's colours, which colour-blind people can distinguish
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8c8c8c", "#000000")


def check_output(path: Path, formats: tuple[str, ...] | None = FORMATS) -> None:
    """Raise TidegateError if ``path`` cannot be written; call it before any work.

    ``formats``: what its name may end in; None for anything.
    """
    if formats is not None and path.suffix.lower() not in formats:
        raise TidegateError(f"cannot write {path}: its name must end in {', '.join(formats)}")
    check_place(path)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise TidegateError(f"cannot write {path}: it is not writable")


def save_figure(figure: Figure, path: Path, title: str) -> None:
    """Write a figure as PNG, SVG or a page of HTML; whole, or not at all."""
    check_output(path)
    kind = path.suffix[1:].lower()
    data = io.BytesIO()
    figure.savefig(data, format="svg" if kind == "html" else kind, dpi=150)
    content = data.getvalue()
    if kind == "html":
        page = _PAGE.format(title=html.escape(title), svg=_element(content))
        content = page.encode()
    write_atomically(path, content)


def html_image(figure: Figure) -> str:
    """Return a figure as an HTML image that holds its own data, for notebooks."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=100)
    return f'<img src="data:image/png;base64,{base64.b64encode(data.getvalue()).decode()}">'


def svg_text(figure: Figure) -> str:
    """Return a figure as an SVG element, for a page."""
    data = io.BytesIO()
    figure.savefig(data, format="svg")
    return _element(data.getvalue())


def _element(svg: bytes) -> str:
    """Return an SVG file without the lines before its element."""
    text = svg.decode()
    return text[text.index("<svg") :]


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 70rem }}
body {{ margin: 2rem auto; padding: 0 1rem }}
svg {{ max-width: 100%; height: auto }}</style>
<h1>{title}</h1>
{svg}
</html>
"""
