"""Cards: the saved ledger of reality, real cards beside the simulator."""

from __future__ import annotations

from typing import Any

from tidegate.display.figures import svg_text
from tidegate.validate.ledger import saved_cards, saved_rows
from tidegate.validate.pictures import draw_ledger


def cards() -> dict[str, Any]:
    """Return how well each machine file is validated, and every row."""
    summary = [{"machine": c.machine, "words": c.words} for c in saved_cards().values()]
    return {"cards": summary, "rows": saved_rows()}


def picture() -> str:
    """Return simulated over measured times, as SVG."""
    return svg_text(draw_ledger(saved_rows()))
