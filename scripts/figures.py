"""Make the figures of the documentation: ``make figures``.

docs/race.svg and docs/tide-race.png are figures of ``tidegate compare``; docs/studio-race.png is
Studio's page in Chromium, and is left alone where there is none.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
WORKLOAD = "blackscholes(bytes=1GiB)"
LEVELS = ["20%", "50%", "100%"]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


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
    tidegate.compare("2DC", systems=BESIDE_TIDE, scale=1 / 16, oversubscribe="50%").plot(path)
    return path


def tide_loses() -> Path:
    """Draw the same for k-means, where our own system is behind the driver."""
    import tidegate

    path = DOCS / "tide-loses.png"
    tidegate.compare(
        "openmp-kmeans",
        systems=BESIDE_TIDE,
        machine="v100-nvlink2",
        scale=1 / 4,
        oversubscribe="50%",
    ).plot(path)
    return path


def studio() -> Path | None:
    """Photograph a race on Studio's page."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        return None
    from playwright.sync_api import sync_playwright

    path = DOCS / "studio-race.png"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        server = subprocess.Popen(
            [sys.executable, "-m", "tidegate", "studio", "--no-browser"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        try:
            page = playwright.chromium.launch(
                executable_path=browser, args=["--no-sandbox"]
            ).new_page(viewport={"width": 1280, "height": 900})
            page.goto(_address(server).split("#")[0] + "#race")
            page.fill("input[name=workload]", "blackscholes")
            page.fill("input[name=bytes]", "256MiB")
            page.get_by_role("button", name="Start the race").click()
            page.wait_for_selector("#results img.figure", timeout=300_000)
            page.screenshot(path=path)
        finally:
            server.terminate()
            server.wait()
    return path


def _address(server: subprocess.Popen[str]) -> str:
    """Return the address that Studio prints, with its token."""
    assert server.stdout is not None
    return next(word for line in server.stdout for word in line.split() if "http://" in word)


if __name__ == "__main__":
    for figure in (race, tide, tide_loses, studio):
        print(figure() or f"{figure.__name__}: there is no Chromium; its figure is left as it is")
