"""Does Studio stay fluid with 60 M touches, and what does recording them cost?

The run is a 10 GB matmul, 63 M touches. Recording: processor time with and without. Latencies: from
the request to the picture, in Debian's Chromium with the server on the same machine, of the first
picture and of pans and zooms over the run; without Chromium, of the server's tiles alone.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks.row import Row
from tidegate.experiments import RunSpec
from tidegate.simulation.recording import Window
from tidegate.studio.tiles import View, tile, whole_of

SPEC = RunSpec("matmul(bytes=10GB)")
REPEATS = 3
STEPS = 27  # pans and zooms
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def studio() -> list[Row]:
    """Return what recording costs, and how long pictures take."""
    rows = [*_cost(), *_tiles()]
    return rows + (_in_browser() if shutil.which("chromium") else [])


def _cost() -> list[Row]:
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(REPEATS):
        for window in (None, Window()):
            simulation = SPEC.resolve(window).simulation
            begin = time.process_time()
            simulation.run()
            times[window is not None].append(time.process_time() - begin)
    plain, recorded = min(times[False]), min(times[True])
    against = f"{plain:.2f} s without, {recorded:.2f} s with"
    return [Row("recording 63 M touches", 100 * (recorded / plain - 1), "% more", against, 20)]


def _tiles() -> list[Row]:
    _, recording = SPEC.record()
    whole, spent = whole_of(recording), []
    views = [
        View(0.3 * i / STEPS, 1 - 0.6 * i / STEPS, width=1400, height=520) for i in range(STEPS)
    ]
    for view in views:
        begin = time.process_time()
        tile(recording, whole, "touches", view)
        spent.append(1000 * (time.process_time() - begin))
    against = "processor time, 1400 × 520 pixels"
    return [Row("a tile of it", statistics.median(spent[1:]), "ms", against)]


def _in_browser() -> list[Row]:
    from playwright.sync_api import sync_playwright

    key = SPEC.key
    command = [sys.executable, "-m", "tidegate", "studio", key, "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert server.stdout is not None
        address = server.stdout.readline().removeprefix("tidegate studio: ").strip()
        with sync_playwright() as p:
            browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            page = browser.new_page(viewport={"width": 1440, "height": 980})
            page.set_default_timeout(120_000)
            begin = time.perf_counter()
            page.goto(address)
            _wait(page)
            first = time.perf_counter() - begin
            spent = _walk(page)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    return [
        Row("first picture of 63 M touches", first, "s", "address to pixels; recorded before", 2),
        Row("a pan or zoom, median", statistics.median(spent), "ms", f"{len(spent)} of them", 150),
    ]


def _wait(page: Any, tiles: int = 1) -> None:
    while page.evaluate("window.studioTiles?.length ?? 0") < tiles:
        page.wait_for_timeout(2)


def _walk(page: Any) -> list[float]:
    """Pan and zoom by keyboard, each step when the one before is drawn; return milliseconds."""
    page.locator("canvas.heat").focus()
    for step in range(STEPS):
        before = page.evaluate("window.studioTiles.length")
        page.keyboard.press(("+", "ArrowRight", "ArrowLeft")[step % 3])
        _wait(page, before + 1)
    made = page.evaluate("window.studioTiles.filter(t => !t.detail).map(t => t.ms)")
    return [float(ms) for ms in made[1:]]
