"""Studio in a real browser: Debian's Chromium, driven by Playwright.

Every step waits for a condition, never for a time. One server and one browser serve all tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tidegate.experiments import RunSpec
from tidegate.live import Arena

pytest.importorskip("starlette", reason="needs tidegate[studio]")
from tidegate.studio.guard import opening_page

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (make extras)")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.extra,
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs Debian's chromium (apt-get install chromium)"
    ),
    pytest.mark.xdist_group("browser"),
]
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
PATIENCE = 120_000  # ms: a busy machine is no failure
WORKLOAD = "cyclic(bytes=48MiB, passes=4)"
SPECS = [RunSpec(WORKLOAD, near="32MiB", eviction=e) for e in ("lrm", "mru")]
BAD_POLICY = """
from tidegate.policy import EvictionPolicy
class Bad(EvictionPolicy):
    def victim(self): raise ValueError("no idea")
"""


class Server:
    """``tidegate studio`` in a process of its own."""

    def __init__(self, folder: Path, *things: str, port: int | None = None):
        self._folder, self._things = folder, things
        self.start(port)

    def start(self, port: int | None = None) -> None:
        environment = {**os.environ, "TIDEGATE_CACHE": str(self._folder / "cache")}
        chosen = ["--port", str(port)] if port else []
        command = [
            sys.executable,
            "-m",
            "tidegate",
            "studio",
            *self._things,
            "--no-browser",
            *chosen,
        ]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True, cwd=self._folder
        )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        self.address = said.removeprefix("tidegate studio: ").strip()
        found = re.search(r"127\.0\.0\.1:(\d+)", self.address)
        assert found, said
        self.port = int(found[1])

    def stop(self, how: int = signal.SIGINT) -> int:
        self.process.send_signal(how)
        return self.process.wait(60)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("studio")
    (folder / "bad.py").write_text(BAD_POLICY)
    (folder / "broken.parquet").write_bytes(b"no trace at all")
    before, os.environ["TIDEGATE_CACHE"] = os.environ.get("TIDEGATE_CACHE"), str(folder / "cache")
    try:
        folder.joinpath("keys.json").write_text(
            json.dumps([spec.record()[0].key for spec in SPECS])
        )
    finally:
        os.environ.pop("TIDEGATE_CACHE")
        if before is not None:
            os.environ["TIDEGATE_CACHE"] = before
    made = Server(folder, "bad.py", "broken.parquet")
    made.keys = json.loads((folder / "keys.json").read_text())
    yield made
    made.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as p:
        made = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@contextmanager
def opened(browser: Any, server: Server, view: str = "", theme: str = "light") -> Iterator[Any]:
    """Open a view as a new visitor; no console error and no foreign request may come of it."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme=theme)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    errors: list[str] = []
    foreign: list[str] = []
    ours = f"http://127.0.0.1:{server.port}/"
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    local = (ours, "data:", "blob:")
    page.on("request", lambda r: None if r.url.startswith(local) else foreign.append(r.url))
    page.goto(server.address.split("#")[0] + (f"#{view}" if view else ""))
    page.errors = errors
    yield page
    context.close()
    assert not errors, errors
    assert not foreign, foreign


def wait_for_tile(page: Any) -> None:
    page.wait_for_selector("canvas.heat[data-ready=yes]")


def wait_for_view(page: Any, part: str) -> None:
    page.wait_for_url(re.compile(f"#.*{re.escape(part)}"))


def shown(page: Any) -> dict[str, float]:
    """Return the query of the view in the address."""
    found = page.evaluate("location.hash.split('?')[1] ?? ''")
    return dict(pair.split("=") for pair in found.split("&")) if found else {}


def test_a_race_from_click_to_table_to_run(browser, server):
    with opened(browser, server) as page:
        page.fill("input[name=workload]", "cyclic")
        page.fill("input[name=bytes]", "32MiB")
        assert not page.get_by_text("Cancel").is_visible()  # nothing runs yet
        page.get_by_role("button", name="Start the race").click()
        page.wait_for_selector("#results img.figure")
        rows = page.locator("#results tbody tr")
        assert rows.count() == 6  # five policies and Belady
        assert "policies=lrm" in page.evaluate("location.hash")
        rows.first.locator("a").first.click()
        wait_for_tile(page)
        assert page.locator("h1").inner_text().startswith("cyclic")


def test_zoom_to_a_launch_by_keyboard_and_open_the_link_again(browser, server):
    with opened(browser, server, f"run/{server.keys[0]}") as page:
        wait_for_tile(page)
        page.locator("canvas.heat").focus()
        page.keyboard.press(".")
        page.keyboard.press(".")
        wait_for_view(page, "x1=")
        wait_for_tile(page)
        view = shown(page)
        run = SPECS[0].run(cache=False)
        second = run.launches.row(1, named=True)
        share = (second["end"] - second["start"]) / run.time
        assert float(view["x1"]) - float(view["x0"]) == pytest.approx(share, abs=0.05)
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("+")
        page.keyboard.press("Enter")
        page.wait_for_selector(".side tbody tr")
        link, text = page.url, page.locator(".side b").inner_text()
        assert "touches" in text
        seen = shown(page)
        page.goto("about:blank")
        page.goto(link)
        wait_for_tile(page)
        page.wait_for_selector(".side tbody tr")
        assert page.locator(".side b").inner_text() == text
        assert shown(page) == seen


def test_wheel_and_drag(browser, server):
    with opened(browser, server, f"run/{server.keys[0]}?axis=touches") as page:
        wait_for_tile(page)
        box = page.locator("canvas.heat").bounding_box()
        x, y = box["x"] + 600, box["y"] + 200
        page.mouse.move(x, y)
        page.mouse.wheel(0, -300)
        wait_for_view(page, "x0=")
        before = shown(page)
        page.mouse.down()
        page.mouse.move(x + 120, y)
        page.mouse.up()
        page.wait_for_url(lambda url: f"x0={before['x0']}&" not in url)
        assert float(shown(page)["x0"]) < float(before["x0"])
        wait_for_tile(page)
        page.mouse.move(x, y)
        page.wait_for_selector(".tip:not([hidden])")
        assert "region" in page.locator(".tip").first.inner_text()


def test_side_by_side(browser, server):
    one, other = server.keys
    with opened(browser, server, f"pair/{one}/{other}") as page:
        maps = page.locator("canvas.heat[data-ready=yes]")
        playwright.expect(maps).to_have_count(3, timeout=PATIENCE)
        assert page.get_by_text("more in B").is_visible()
        page.locator("canvas.heat").first.focus()
        page.keyboard.press("+")
        wait_for_view(page, "x0=")


def test_the_other_tabs(browser, server):
    with opened(browser, server, "curves?workload=zipf&bytes=32MiB&system=uvm,lru", "dark") as page:
        playwright.expect(page.locator(".u-wrap")).to_have_count(3, timeout=PATIENCE)
        text = page.locator("[role=status]").filter(has_text="instead of").first
        before = text.inner_text()
        instead = page.get_by_role("slider", name="Near memory instead").first
        instead.press("PageUp")
        assert text.inner_text() != before
        moved = shown(page)["instead"]
        box = instead.bounding_box()
        page.mouse.move(box["x"] + 8, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] - 192, box["y"] + 60)
        page.mouse.up()
        assert float(shown(page)["instead"]) < float(moved)
        page.get_by_role("tab", name="Papers").click()
        page.wait_for_selector("text=Nothing measured yet")
        page.get_by_role("tab", name="Plan").click()
        page.select_option("select[name=program]", "nn")
        page.fill("input[name=near]", "64MiB")
        page.get_by_role("button", name="Plan", exact=True).click()
        page.wait_for_selector("pre")
        assert "cudaMem" in page.locator("pre").first.inner_text()
        page.get_by_role("button", name="Theme").click()
        assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_only_the_keyboard(browser, server):
    """From a blank page to a run: Tab reaches the tabs, the list and the map."""
    with opened(browser, server, "run") as page:
        page.wait_for_selector("tbody tr a")
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.closest('tbody') !== null"):
                break
        page.keyboard.press("Enter")
        wait_for_tile(page)
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.className === 'heat'"):
                break
        page.keyboard.press("=")
        wait_for_view(page, "x0=")


def test_bad_input_is_one_line(browser, server):
    line = "#message:not([hidden])"
    with opened(browser, server, "run/0123") as page:
        page.wait_for_selector(line)
        assert "run must be one of" in page.locator("#message").inner_text()
        page.goto(page.url.split("#")[0] + "#race?workload=broken.parquet&bytes=")
        page.get_by_role("button", name="Start the race").click()
        page.wait_for_selector("#message:has-text('broken.parquet')")
        page.fill("input[name=workload]", "cyclic")
        page.fill("input[name=bytes]", "16MiB")
        page.fill("input[name=others]", "bad.py:Bad")
        page.get_by_role("button", name="Start the race").click()
        page.wait_for_selector("tr.failed")
        assert "no idea" in page.locator("tr.failed").first.inner_text()
        page.fill("input[name=others]", "other.py:X")
        page.get_by_role("button", name="Start the race").click()
        page.wait_for_selector("#message:has-text('command line')")
        page.errors[:] = [e for e in page.errors if "status of 400" not in e]  # as intended


@pytest.mark.live
def test_a_live_arena_is_seen_moving(browser, server):
    with Arena("512KiB", eviction="lrm", geometry="16KiB/128KiB", span="1GiB") as arena:
        array = arena.empty(4 << 20, "u1", name="mine")  # 32 regions
        array[: 1 << 18] = 1
        with opened(browser, server, "live") as page:
            card = f".arena[data-process='{os.getpid()}']"
            strip = f"{card} .strip"
            page.wait_for_selector(strip)
            before = page.locator(strip).first.get_attribute("data-near")
            assert (len(before), before[:2], set(before[4:])) == (32, "99", {"0"})
            array[3 << 20 :] = 2
            page.wait_for_selector(f"{strip}:not([data-near='{before}'])")
    with opened(browser, server, "live") as page:
        page.wait_for_selector("[data-seen]", state="attached")
        assert page.locator(card).count() == 0


def test_a_server_killed_and_started_again(browser, server):
    with opened(browser, server, f"run/{server.keys[0]}") as page:
        wait_for_tile(page)
        server.stop(signal.SIGKILL)
        page.locator("canvas.heat").focus()
        page.keyboard.press("+")
        page.wait_for_selector("#message:has-text('does not answer')")
        server.start(server.port)
        page.context.new_page().goto(server.address)  # its token is another one
        page.evaluate("document.querySelector('canvas.heat').dataset.ready = ''")
        page.keyboard.press("+")
        wait_for_tile(page)
        page.errors[:] = [e for e in page.errors if "ERR_CONNECTION" not in e]  # as intended
    assert server.stop() == 0  # Ctrl-C ends it
    server.start()


def test_from_the_private_page(browser, server):
    """A file is another site to a browser, which sends no cookie along a redirection from it."""
    with opening_page(server.address) as file:
        page = browser.new_context().new_page()
        page.goto(file.as_uri())
        page.wait_for_url(f"http://127.0.0.1:{server.port}/#race")
        page.wait_for_selector("#tabs [data-tab='race'][aria-selected='true']")
        page.go_back()
        assert "token" not in page.url
        page.context.close()


def test_without_the_token(browser, server):
    page = browser.new_page()
    assert page.goto(f"http://127.0.0.1:{server.port}/").status == 401
    page.close()
