"""Photograph Studio's tabs: ``python scripts/studio_pages.py FOLDER`` takes all, light and dark.

Look at the pictures after a change of the page. Those of the documentation are made by
``make figures`` (figures.py), which uses the same visits.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
SIZE = {"width": 1280, "height": 900}
PATIENCE = 600_000  # ms


def race(page: Any) -> None:
    """Race the page's own choice of policies on Black-Scholes."""
    page.fill("input[name=workload]", "blackscholes")
    page.fill("input[name=bytes]", "256MiB")
    page.get_by_role("button", name="Start the race").click()
    page.wait_for_selector("#results img.figure")


def run(page: Any) -> None:
    """Open a run of the race."""
    race(page)
    page.locator("#results a[href^='#run/']").first.click()
    page.wait_for_selector("canvas.heat[data-ready=yes]")
    page.get_by_role("button", name="Residency").click()
    page.wait_for_selector("canvas.heat[data-ready=yes]")


def pair(page: Any) -> None:
    """Hold two runs of the race against each other."""
    race(page)
    keys = page.eval_on_selector_all(
        "#results a[href^='#run/']", "all => all.slice(0, 2).map(a => a.hash.slice(5))"
    )
    page.evaluate("keys => { location.hash = `#pair/${keys.join('/')}` }", keys)
    page.locator("canvas.heat[data-ready=yes]").nth(2).wait_for()


def tiers(page: Any) -> None:
    """Open a run over three tiers."""
    page.select_option("select[name=kind]", "tierings")
    page.fill("input[name=workload]", "zipf")
    page.fill("input[name=bytes]", "64MiB")
    page.get_by_role("button", name="Start the race").click()
    page.wait_for_selector("#results img.figure")
    page.locator("#results a[href^='#run/']").last.click()
    page.wait_for_selector("canvas.heat[data-ready=yes]")
    page.get_by_role("button", name="In host memory").click()
    page.wait_for_selector("canvas.heat[data-ready=yes]")


def curves(page: Any) -> None:
    """Draw miss-ratio curves."""
    _open(page, "curves?workload=zipf&bytes=32MiB&systems=uvm,lru")
    page.locator(".u-wrap").nth(2).wait_for()


def plan(page: Any) -> None:
    """Plan a program."""
    _open(page, "plan?program=nn&near=64MiB")
    page.wait_for_selector("pre")


def advice(page: Any) -> None:
    """Advise on a workload."""
    _open(page, "advice?program=stencil(bytes=64MiB)&near=32MiB")
    page.wait_for_selector("#advice .words")


def papers(page: Any) -> None:
    """Show a paper's claims."""
    _open(page, "papers/observuvm")
    page.wait_for_selector("table")


def live(page: Any) -> None:
    """Show running arenas, if there are any."""
    _open(page, "live")
    page.wait_for_selector("main h1")


VISITS: dict[str, Callable[[Any], None]] = {
    visit.__name__: visit for visit in (race, run, pair, tiers, curves, plan, advice, papers, live)
}


def photograph(files: dict[Path, tuple[str, str]], full: bool = False) -> bool:
    """Make these files, each of a visit and a theme; return False where there is no Chromium.

    ``full``: the whole page, not what fits on a screen.
    """
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        return False
    from playwright.sync_api import sync_playwright

    with _studio() as address, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=FLAGS)
        for path, (visit, theme) in files.items():
            context = chromium.new_context(viewport=SIZE, color_scheme=theme)
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(address.split("#")[0] + "#race")
            page.wait_for_selector("input[name=workload]")
            VISITS[visit](page)
            page.screenshot(path=path, full_page=full)
            context.close()
        chromium.close()
    return True


@contextmanager
def _studio() -> Iterator[str]:
    """Run ``tidegate studio``; yield its address, with the token."""
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(
            [sys.executable, "-m", "tidegate", "studio", "--no-browser"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
        )
        try:
            assert server.stdout is not None
            yield next(w for line in server.stdout for w in line.split() if "http://" in w)
        finally:
            server.terminate()
            server.wait()


def _open(page: Any, view: str) -> None:
    page.evaluate("view => { location.hash = `#${view}` }", view)


def main(folder: Path, chosen: list[str]) -> None:
    """Take every visit, or those chosen, in both themes."""
    unknown = set(chosen) - set(VISITS)
    if unknown:
        sys.exit(f"visits must be of {', '.join(VISITS)}, got {', '.join(sorted(unknown))}")
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        folder / f"{visit}-{theme}.png": (visit, theme)
        for visit in chosen or VISITS
        for theme in ("light", "dark")
    }
    if not photograph(files, full=True):
        sys.exit("there is no Chromium; install Debian's chromium")
    print(*files, sep="\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python scripts/studio_pages.py FOLDER [VISIT ...]")
    main(Path(sys.argv[1]), sys.argv[2:])
