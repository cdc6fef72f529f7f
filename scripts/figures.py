"""Make the figures of the documentation: ``make figures``.

docs/race.svg and docs/tide-race.png are figures of ``tidegate compare``; docs/validation.png is of
the saved ledger of reality; docs/studio-*.png are Studio's page in Chromium, and are left alone
where there is none. Names of figures after the command choose some: ``python scripts/figures.py
studio``.
"""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
WORKLOAD = "blackscholes(bytes=1GiB)"
LEVELS = ["20%", "50%", "100%"]


def race() -> Path:
    """Draw the race of README: policies on Black-Scholes at three sizes of near memory."""
    import tidegate

    path = DOCS / "race.svg"
    tidegate.compare(WORKLOAD, oversubscribe=LEVELS).plot(path)
    return path


BESIDE_TIDE = ["uvm", "acbm", "host", "tm++", "tide"]


def tide() -> Path:
    """Draw our own system beside published ones, on a stencil, where it wins."""
    import tidegate

    path = DOCS / "tide-race.png"
    tidegate.compare("2DC", system=BESIDE_TIDE, scale=1 / 16, oversubscribe="50%").plot(path)
    return path


def tide_loses() -> Path:
    """Draw the same for nn, which reads its data once: a plan is ahead of our own system."""
    import tidegate

    path = DOCS / "tide-loses.png"
    tidegate.compare(
        "openmp-nn",
        system=["uvm", "acbm", "host", "rdm", "tide"],
        machine="v100-nvlink2",
        scale=1 / 4,
        oversubscribe="50%",
    ).plot(path)
    return path


def validation() -> Path:
    """Draw simulated over measured times of all cards."""
    from tidegate.display.figures import save_figure
    from tidegate.validate.ledger import saved_rows
    from tidegate.validate.pictures import draw_ledger

    path = DOCS / "validation.png"
    save_figure(draw_ledger(saved_rows()), path, "Tidegate beside real cards")
    return path


def studio() -> list[Path] | None:
    """Photograph Studio: a race, and a run of it."""
    from studio_pages import photograph

    files = {DOCS / "studio-race.png": ("race", "light"), DOCS / "studio-run.png": ("run", "dark")}
    return list(files) if photograph(files) else None


if __name__ == "__main__":
    for figure in (race, tide, tide_loses, validation, studio):
        if figure.__name__ in sys.argv[1:] or len(sys.argv) == 1:
            print(figure() or f"{figure.__name__}: there is no Chromium; it is left as it is")
