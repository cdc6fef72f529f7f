"""The API of Studio: who gets in, what it answers, and bad input."""

from __future__ import annotations

import json
import stat
import time
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs tidegate[studio]")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")
import uvicorn
from starlette.testclient import TestClient

from advice.programs import decode
from tidegate.advice import Simulator, advise_on, find_subject
from tidegate.advice.words import sentences, tables
from tidegate.errors import TidegateError
from tidegate.experiments import RunSpec
from tidegate.files import cache_folder
from tidegate.machine.machine import load_machine
from tidegate.studio import advices
from tidegate.studio.api import Studio
from tidegate.studio.guard import Guard
from tidegate.studio.jobs import Cancelled, Job
from tidegate.studio.library import Allowed, Library, respecify
from tidegate.studio.serve import make_studio, serve
from tidegate.trace.ops import save_ops

pytestmark = pytest.mark.extra

PORT, TOKEN = 8719, "t" * 40
BASE = f"http://127.0.0.1:{PORT}"
SPEC = RunSpec("cyclic(bytes=48MiB, passes=3)", near="32MiB", slots=4)
TIERED = RunSpec(
    "zipf(bytes=16MiB)", "a100-pcie3-ssd", tiering="tier-reuse", near="2MiB", middle="4MiB"
)


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a store of its own, with the compiled code of all."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "compiled").symlink_to(cache_folder() / "compiled")
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def studio() -> Studio:
    return Studio()


@pytest.fixture
def stranger(studio: Studio) -> TestClient:
    """Someone without the token."""
    return TestClient(Guard(studio.app(), TOKEN, PORT), base_url=BASE, follow_redirects=False)


@pytest.fixture
def client(stranger: TestClient) -> TestClient:
    stranger.headers["authorization"] = f"Bearer {TOKEN}"
    return stranger


def get(client: TestClient, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(client: TestClient, path: str, **query: Any) -> str:
    answer = client.get(path, params=query)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"])


def finish(client: TestClient, path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Start a job and wait until it ends."""
    answer = client.post(path, json=asked)
    assert answer.status_code == 200, answer.text
    number, deadline = answer.json()["number"], time.monotonic() + 120
    while (job := get(client, f"/api/jobs/{number}"))["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return dict(job)


# Who gets in


@pytest.mark.parametrize(
    "path", ["/", "/app.js", "/api/runs", "/api/names", "/api/live/events", "/api/jobs/1"]
)
def test_nothing_without_the_token(stranger, path):
    assert stranger.get(path).status_code == 401
    wrong = {"authorization": f"Bearer {TOKEN[:-1]}x"}
    assert stranger.get(path, headers=wrong).status_code == 401
    assert stranger.get(path, params={"token": "guess"}).status_code == 401
    assert stranger.get(path, headers={"cookie": f"tidegate-studio-{PORT}=x"}).status_code == 401
    assert stranger.get(path, headers={"cookie": f"tidegate-studio-1={TOKEN}"}).status_code == 401


@pytest.mark.parametrize("path", ["/api/race", "/api/curves", "/api/plan", "/api/jobs/1/cancel"])
def test_nothing_is_started_without_the_token(stranger, path):
    assert stranger.post(path, json={"workload": "cyclic"}).status_code == 401


@pytest.mark.parametrize("host", ["evil.example:8719", "127.0.0.1:1", "127.0.0.1", "[::1]:8719"])
def test_a_wrong_host_is_refused(client, host):
    assert client.get("/api/runs", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", ""])
def test_a_wrong_origin_is_refused(client, origin):
    assert client.get("/api/runs", headers={"origin": origin}).status_code == 403
    assert client.post("/api/race", json={}, headers={"origin": origin}).status_code == 403


def test_a_page_of_another_site_is_refused(client):
    assert client.get("/api/runs", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    assert client.get("/api/runs", headers={"sec-fetch-site": "same-origin"}).status_code == 200


def test_the_address_sets_a_cookie_and_hides_the_token(stranger):
    answer = stranger.get("/", params={"token": TOKEN})
    assert answer.status_code == 200
    assert TOKEN not in answer.text
    assert "/enter.js" in answer.text  # which leaves the address
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "max-age" not in cookie  # the next server has another token
    page = stranger.get("/")
    assert page.status_code == 200
    assert TOKEN not in page.text
    assert "default-src 'self'" in page.headers["content-security-policy"]


@pytest.mark.parametrize("site", ["none", "cross-site"])
def test_a_pass_opens_the_studio_once(studio, site):
    guard = Guard(studio.app(), TOKEN, PORT)
    visitor, later = (TestClient(guard, base_url=BASE) for _ in range(2))
    asked = {"params": {"token": guard.once}, "headers": {"sec-fetch-site": site}}
    assert visitor.get("/", **asked).status_code == 200
    assert visitor.get("/api/names").status_code == 200
    assert later.get("/", **asked).status_code in (401, 403)
    assert later.get("/", params={"token": ""}).status_code == 401
    assert later.get("/api/names").status_code == 401


@pytest.mark.parametrize("path", ["//evil.example", "/%2e%2e/guard.py", "/../guard.py"])
def test_paths_lead_nowhere_else(client, path):
    answer = client.get(BASE + path, params={"token": TOKEN})
    assert answer.headers.get("location", "/") == "/"
    assert client.get(BASE + path).status_code in (404, 400)


def test_the_browser_is_given_a_private_page_and_no_token(tmp_path, monkeypatch):
    """Everybody can read the arguments of a browser."""
    seen, said = [], []

    def open_browser(address: str) -> None:
        page = Path(unquote(urlsplit(address).path))
        seen.append((address, page.read_text(), page))
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700

    def run(server: uvicorn.Server, sockets: Any) -> None:
        guard: Any = server.config.app
        assert guard.once in seen[-1][1]

    monkeypatch.setattr("webbrowser.open", open_browser)
    monkeypatch.setattr(uvicorn.Server, "run", run)
    for _ in range(2):
        serve(Studio(), 'run/<x>"', say=said.append)
    tokens = [parse_qs(urlsplit(line.split()[-1]).query)["token"][0] for line in said]
    assert len(set(tokens)) == 2  # new for each server
    for address, page, file in seen:
        assert address.startswith("file:///")
        assert not any(token in address + page for token in tokens)
        assert '#run/&lt;x&gt;&quot;"' in page
        assert not file.parent.exists()  # gone with the server
    assert not (tmp_path / "cache" / "studio-token").exists()


# Files


def test_files_must_be_given(tmp_path):
    mine, other = tmp_path / "mine.py", tmp_path / "other.py"
    mine.write_text("")
    allowed = Allowed((mine,))
    allowed.check("lrm", "zipf(skew=0.9)", f"{mine}:Mine", None)
    for text in (f"{other}:X", f"tournament(policies=lru+{other}:X)", "/etc/passwd", "a/b.parquet"):
        with pytest.raises(TidegateError, match="must be given on the command line"):
            allowed.check(text)
        Allowed(any=True).check(text)


def test_a_race_with_code_that_was_not_given_is_refused(client, tmp_path):
    code = tmp_path / "evil.py"
    code.write_text(f"open({str(tmp_path / 'owned')!r}, 'w').write('x')")
    for asked in (
        {"workload": "cyclic", "eviction": f"{code}:X"},
        {"workload": f"{code}:X"},
        {"workload": "cyclic", "prefetch": f"{code}:X"},
    ):
        answer = client.post("/api/race", json=asked)
        assert answer.status_code == 400
        assert "must be given on the command line" in answer.json()["error"]
    assert not (tmp_path / "owned").exists()


# Runs


def test_a_stored_run_is_listed_and_found_again(client):
    run = SPEC.run()
    listed = get(client, "/api/runs")
    assert [r["key"] for r in listed] == [run.key]
    assert respecify(run).key == run.key
    shown = get(client, f"/api/runs/{run.key}")
    assert shown["time_ns"] == run.time
    assert shown["objects"][0]["regions"] == 24
    assert shown["launches"][-1]["last_touch"] == run.counts["touches"]


@pytest.mark.parametrize(
    "changed",
    [
        {"eviction": "random(seed=3)"},
        {"prefetch": "none"},
        {"dirty_only": True},
        {"slots": None},
        {"pipelined": True},
        {"eviction": "cp"},
        {"scale": "1/2", "eviction": "tournament"},
    ],
)
def test_every_kind_of_stored_run_can_be_recorded_again(changed):
    run = SPEC.change(**changed).run()
    assert respecify(run).key == run.key


@pytest.mark.parametrize(
    "changed",
    [
        {"tiering": "tier-order", "middle": 0},
        {"spare": True, "near": "64MiB", "flush": False},
        {"eviction": "lru", "jitter": 4, "traits": True},
    ],
)
def test_every_kind_of_run_over_three_tiers_can_be_recorded_again(changed):
    run = TIERED.change(**changed).run()
    assert respecify(run).key == run.key


def test_a_run_over_three_tiers_has_tiles_cells_and_stories(client):
    run = TIERED.run()
    charts = get(client, f"/api/runs/{run.key}/charts")
    assert charts["books"]["far_reads"][-1] == run.counts["far_reads"]
    tile = client.get(f"/api/runs/{run.key}/tile", params={"layer": "middle", "width": 64})
    assert (tile.headers["x-top"], max(tile.content) > 0) == ("1", True)
    cell = get(client, f"/api/runs/{run.key}/cell", x=0.99, y=0.0)
    assert (cell["residency"], cell["middle"], cell["pages"]) in {(0, 0, 1), (0, 1, 1), (1, 0, 1)}
    told = get(client, f"/api/runs/{run.key}/story", region=3)
    assert told["lines"][0] | {"why": "from the SSD", "by": "a touch"} == told["lines"][0]
    assert {line["by"] for line in told["lines"]} == {"a touch", "tier-reuse"}
    assert "layer" in refused(client, f"/api/runs/{run.key}/tile", layer="prefetched")


@pytest.mark.oracle
def test_a_tile_of_full_size_is_the_recording(client):
    run, recording = SPEC.record()
    for layer in ("touches", "faults", "evictions"):
        answer = client.get(
            f"/api/runs/{run.key}/tile",
            params={"layer": layer, "width": recording.bins, "height": recording.cells},
        )
        pixels = np.frombuffer(answer.content, np.uint8).reshape(recording.cells, recording.bins)
        counts = recording.layers[layer].T.astype(float)
        top = float(answer.headers["x-top"])
        assert top == counts.max()
        back = np.where(pixels > 0, np.expm1((pixels - 1.0) / 254 * np.log1p(top)), 0)
        assert (pixels > 0).tolist() == (counts > 0).tolist()
        assert np.abs(np.log1p(back) - np.log1p(counts)).max() <= np.log1p(top) / 250


def test_a_difference_of_a_run_with_itself_is_nothing(client):
    run, _ = SPEC.record()
    answer = client.get(f"/api/runs/{run.key}/tile", params={"against": run.key, "layer": "faults"})
    assert set(answer.content) == {128}


def test_runs_of_two_traces_are_not_compared(client):
    one, other = SPEC.run(), RunSpec("cyclic(bytes=16MiB)").run()
    said = refused(client, f"/api/runs/{one.key}/tile", against=other.key)
    assert "same trace" in said


def test_charts_cells_and_stories(client):
    run, recording = SPEC.record()
    books = get(client, f"/api/runs/{run.key}/charts")["books"]
    assert books["faults"][-1] == run.counts["faults"]
    assert books["time"][0] == 0
    assert books["time"][-1] == pytest.approx(run.time)
    cell = get(client, f"/api/runs/{run.key}/cell", x=0, y=0.5)
    assert (cell["region"], cell["first_touch"]) == (12, 0)
    assert cell["object"] == run.tables["objects"]["name"][0]
    total = 0
    for region in range(recording.regions):
        told = get(client, f"/api/runs/{run.key}/story", region=region)
        left = [line for line in told["lines"] if line["what"] == "left"]
        assert {line["by"] for line in left} <= {run.facts["eviction"]}
        total += len(left)
    assert total == run.counts["evictions"]


def test_detail_of_a_small_part(client):
    spec = RunSpec("uniform(bytes=64MiB, touches=200000)", near="48MiB")
    run, recording = spec.record()
    view = {"x0": 0.5, "x1": 0.51, "y0": 0, "y1": 1, "layer": "touches", "width": 64, "height": 32}
    coarse = client.get(f"/api/runs/{run.key}/tile", params=view)
    fine = client.get(f"/api/runs/{run.key}/tile", params={**view, "detail": 1})
    assert coarse.headers["x-finer"] == "1"
    assert int(coarse.headers["x-touches-per-bin"]) == recording.touches_per_bin
    assert int(fine.headers["x-touches-per-bin"]) < recording.touches_per_bin


def test_bad_questions_get_one_line(client):
    run, _ = SPEC.record()
    at = f"/api/runs/{run.key}"
    assert "run must be one of" in refused(client, "/api/runs/nosuch")
    assert "layer" in refused(client, f"{at}/tile", layer="heat")
    assert "axis" in refused(client, f"{at}/tile", axis="seconds")
    assert "x0 and x1 must rise" in refused(client, f"{at}/tile", x0=0.5, x1=0.2)
    assert "x0 must be a number" in refused(client, f"{at}/tile", x0="left")
    assert "width must be from" in refused(client, f"{at}/tile", width=100000)
    assert "first_region must be below" in refused(client, f"{at}/story", region=99)
    assert "x must be a number" in refused(client, f"{at}/cell")
    assert "x and y must be from" in refused(client, f"{at}/cell", x=1, y=0)
    assert "job must be one of" in refused(client, "/api/jobs/99")
    assert "paper" in refused(client, "/api/papers/nosuch")
    for path in ("/api/race", "/api/curves"):
        for body in (b"[]", b"{", b"\xff"):
            assert client.post(path, content=body).status_code == 400
    assert client.post("/api/race", content=b"x" * 70000).status_code == 413


def test_memory_is_bound():
    library = Library(memory=1)
    runs = [RunSpec("cyclic(bytes=16MiB)", near=near).run() for near in ("8MiB", "12MiB")]
    first, second = (library.recording(run.key) for run in runs)
    assert library.bytes == second.bytes  # the last one stays, whatever it takes
    assert library.recording(runs[1].key) is second
    assert library.recording(runs[0].key) is not first


# Jobs


def test_a_race_from_start_to_figure(client):
    asked = {"workload": "cyclic(bytes=32MiB)", "eviction": "lrm,mru", "oversubscribe": "50%"}
    job = finish(client, "/api/race", asked)
    assert (job["state"], job["done"], job["total"]) == ("done", 3, 3)
    assert [row["policy"] for row in job["rows"]] == ["lrm", "mru", "belady"]
    mru = RunSpec("cyclic(bytes=32MiB)", eviction="mru", oversubscribe="50%").run()
    assert job["rows"][1]["time_ns"] == mru.time
    assert client.get(f"/api/jobs/{job['number']}/figure.svg").text.startswith("<svg")
    assert get(client, f"/api/runs/{job['rows'][0]['key']}/charts")["books"]["faults"][-1] > 0


def test_a_policy_that_raises_is_one_line(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from tidegate.policy import EvictionPolicy\n"
        "class Bad(EvictionPolicy):\n"
        "    def victim(self): raise ValueError('no idea')\n"
    )
    studio, view = make_studio([str(file)])
    client = TestClient(Guard(studio.app(), TOKEN, PORT), base_url=BASE)
    client.headers["authorization"] = f"Bearer {TOKEN}"
    asked = {"workload": "cyclic(bytes=32MiB)", "eviction": f"lrm,{file}:Bad", "belady": False}
    job = finish(client, "/api/race", asked)
    assert view == "race"
    assert job["state"] == "done"
    assert "no idea" in job["rows"][1]["failed"]
    assert "\n" not in job["rows"][1]["failed"]
    alone = finish(client, "/api/race", {**asked, "eviction": f"{file}:Bad"})
    assert alone["state"] == "failed"
    assert "no idea" in alone["error"]


def test_bad_races_are_refused(client):
    for asked, said in (
        ({}, "workload must be given"),
        ({"workload": "nosuch"}, "nosuch"),
        ({"workload": "cyclic", "eviction": "nosuch"}, "nosuch"),
        ({"workload": "cyclic", "near": "lots"}, "lots"),
        ({"workload": "cyclic", "colour": "red"}, "no field 'colour'"),
        ({"workload": ["cyclic"]}, "must be a text"),
        ({"workload": "cyclic", "slots": "many"}, "whole number"),
    ):
        answer = client.post("/api/race", json=asked)
        assert answer.status_code == 400, asked
        assert said in answer.json()["error"]


def test_a_race_can_be_cancelled(client):
    asked = {"workload": "uniform(bytes=64MiB, touches=400000000)", "near": "48MiB"}
    number = client.post("/api/race", json=asked).json()["number"]
    client.post(f"/api/jobs/{number}/cancel")
    deadline = time.monotonic() + 60
    while (job := get(client, f"/api/jobs/{number}"))["state"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert job["state"] == "cancelled"


@pytest.mark.closed_form
def test_curves_of_a_cyclic_scan(client):
    job = finish(client, "/api/curves", {"workload": "cyclic(bytes=16MiB, passes=4)"})
    lru, belady = job["result"]["lru"], job["result"]["belady"]
    assert lru["ratio"][-2] > lru["ratio"][-1]  # nothing helps until all fits
    assert job["result"]["distinct"] == 8
    assert all(b <= max(lru["ratio"]) + 1e-12 for b in belady["ratio"])


def test_a_plan_has_places_code_and_times(client):
    job = finish(client, "/api/plan", {"program": "nn", "near": "64MiB"})
    assert job["state"] == "done", job["error"]
    result = job["result"]
    assert result["places"]
    assert "cudaMem" in result["cuda"]
    assert result["predicted"]["um"]["time_ns"] > 0
    assert finish(client, "/api/plan", {"program": "nosuch"})["state"] == "failed"


# Advice


def test_advice_is_that_of_the_command_line(tmp_path):
    """Words, tables, pictures and code; counted run by run."""
    file = save_ops(decode(layers=4, tokens=2), tmp_path / "step.parquet")
    job, asked = Job(1, "advice"), {"program": str(file), "near": "12MiB"}
    advices.advise(job, asked, workers=1)
    found = job.result
    assert (job.done, job.unit) == (job.total, "runs (machines)")
    machine = load_machine(advices.MACHINE)
    subject = find_subject(str(file), 12 << 20, machine, {})
    same = advise_on(subject, machine, 12 << 20, Simulator(workers=1))
    assert found["words"] == sentences(same)
    assert [t["title"] for t in found["tables"]] == [t.title for t in tables(same)]
    assert found["tables"][0]["rows"][0][1] == same.ranked[0].name
    assert all(picture.startswith("<svg") for picture in found["pictures"])
    assert set(found["code"]) == {"torch", "cuda"}
    json.dumps(found)


def test_advice_can_be_cancelled(tmp_path):
    file = save_ops(decode(layers=4, tokens=1), tmp_path / "step.parquet")
    job = Job(1, "advice")
    job.cancel()
    with pytest.raises(Cancelled):
        advices.advise(job, {"program": str(file), "near": "12MiB"}, workers=1)


def test_advice_needs_a_program_and_no_file_that_was_not_given(client, tmp_path):
    def said(**asked: str) -> str:
        return str(client.post("/api/advice", json=asked).json()["error"])

    assert "program must be given" in said()
    assert "must be given on the command line" in said(program="train.py")
    assert "must be given on the command line" in said(program="gpt-124m", machine="my.toml")
    assert finish(client, "/api/advice", {"program": "cyclic", "near": "lots"})["state"] == "failed"


# What the command line opens


def test_things_to_open(tmp_path):
    run = SPEC.run()
    said = tmp_path / "run.json"
    said.write_text(json.dumps({"key": run.key, "summary": {}}))
    report = tmp_path / "report.json"
    report.write_text(json.dumps([{"paper": "gmt", "title": "GMT", "ledger": []}]))
    assert make_studio([run.key])[1] == f"run/{run.key}"
    assert make_studio([str(said)])[1] == f"run/{run.key}"
    assert make_studio([str(report)])[1] == "papers/gmt"
    trace = tmp_path / "t.parquet"
    trace.write_bytes(b"not a trace")
    _studio, view = make_studio([str(trace)])
    assert view == f"race?workload={trace}"
    report.write_text("{}")
    with pytest.raises(TidegateError, match="must hold what reproduce"):
        make_studio([str(report)])
    report.write_text("{")
    with pytest.raises(TidegateError, match="must be a JSON file"):
        make_studio([str(report)])
    with pytest.raises(TidegateError, match="file must exist"):
        make_studio(["nosuch.parquet"])


def test_a_damaged_trace_is_one_line(tmp_path):
    trace = tmp_path / "t.parquet"
    trace.write_bytes(b"not a trace")
    studio, _ = make_studio([str(trace)])
    client = TestClient(Guard(studio.app(), TOKEN, PORT), base_url=BASE)
    client.headers["authorization"] = f"Bearer {TOKEN}"
    answer = client.post("/api/race", json={"workload": str(trace)})
    assert answer.status_code == 400
    assert "t.parquet" in answer.json()["error"]


def test_papers_without_a_report_have_their_claims(client):
    names = [paper["name"] for paper in get(client, "/api/papers")]
    assert "observuvm" in names
    report = get(client, "/api/papers/observuvm")
    assert report["claims"]
    assert "ledger" not in report


def test_cards_are_the_saved_ledger_and_its_picture(client):
    found = get(client, "/api/cards")
    assert {row["machine"] for row in found["rows"]} == {c["machine"] for c in found["cards"]}
    assert all("test rows" in card["words"] for card in found["cards"])
    picture = client.get("/api/cards/figure.svg")
    assert picture.headers["content-type"].startswith("image/svg")
    assert picture.text.startswith("<svg")


def test_pixels_are_deflated(client):
    run, _ = SPEC.record()
    request = client.build_request("GET", f"/api/runs/{run.key}/tile?width=64&height=32")
    answer = client.send(request, stream=True)
    raw = b"".join(answer.iter_raw())
    assert len(zlib.decompress(raw)) == 64 * 32


def test_a_request_that_is_nested_deeply_is_one_line(client):
    answer = client.post("/api/race", content=b"[" * 60_000)
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "the request must be JSON, got something else"},
    )
