"""The API: small, typed, and the same for the page and for a notebook.

    GET  /api/runs                        every known run
    GET  /api/runs/{key}                  one run: facts, counts, parts, objects, launches
    GET  /api/runs/{key}/charts           the books over time, from its recording
    GET  /api/runs/{key}/tile             a view of a layer as pixels; ?against=KEY: a difference
    GET  /api/runs/{key}/cell             everything about one bin of one region
    GET  /api/runs/{key}/story            what happened to one region
    GET  /api/names                       workloads, policies, systems, machines, programs
    GET  /api/papers, /api/papers/{name}  ledgers
    GET  /api/cards, /api/cards/figure.svg  the ledger of reality
    GET  /api/live/events                 running arenas, as server-sent events
    POST /api/race, /api/curves, /api/plan, /api/advice, /api/papers/{name}   start a job
    GET  /api/jobs/{number}, …/figure.svg; POST …/cancel

An error is ``{"error": one line}`` with status 400.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from tidegate.errors import TidegateError
from tidegate.live.arena.running import rates, running_arenas
from tidegate.simulation.recorded import Recording
from tidegate.simulation.recording import Window
from tidegate.studio import advices, cards, plans, races, recorded_views
from tidegate.studio.jobs import Jobs
from tidegate.studio.library import Allowed, Library, describe_run
from tidegate.studio.names import known_names
from tidegate.studio.papers import Papers
from tidegate.studio.tiles import View, difference, tile, whole_of

PAGE = Path(__file__).parent / "page"
LARGEST_BODY = 1 << 16
LIVE_SECONDS = 0.5  # between two looks at running arenas
FAST = 1  # of zlib: the bytes stay on this machine


@dataclass
class Studio:
    """The state behind the API."""

    library: Library = field(default_factory=Library)
    allowed: Allowed = field(default_factory=Allowed)
    papers: Papers = field(default_factory=Papers)
    jobs: Jobs = field(default_factory=Jobs)
    opened: dict[str, Any] = field(default_factory=dict)  # what the command line gave

    def app(self) -> Starlette:
        """Return the application; ``Guard`` belongs around it."""
        routes = [
            Route("/api/names", _answer(self.names)),
            Route("/api/runs", _answer(self.runs)),
            Route("/api/runs/{key}", _answer(self.run)),
            Route("/api/runs/{key}/charts", _answer(self.charts)),
            Route("/api/runs/{key}/tile", _answer(self.tile)),
            Route("/api/runs/{key}/cell", _answer(self.cell)),
            Route("/api/runs/{key}/story", _answer(self.story)),
            Route("/api/runs/{key}/progress", _answer(self.progress)),
            Route("/api/papers", _answer(self.list_papers)),
            Route("/api/papers/{name}", _answer(self.paper)),
            Route("/api/papers/{name}/figure.svg", _answer(self.exhibit)),
            Route("/api/cards", _answer(lambda request: cards.cards())),
            Route("/api/cards/figure.svg", _answer(_picture_of_cards)),
            Route("/api/live/events", _live),
            Route("/api/jobs/{number:int}", _answer(self.job)),
            Route("/api/jobs/{number:int}/figure.svg", _answer(self.figure)),
            Route("/api/jobs/{number:int}/cancel", _change(self.cancel), methods=["POST"]),
            Route("/api/race", _change(self.race), methods=["POST"]),
            Route("/api/curves", _change(self.curves), methods=["POST"]),
            Route("/api/plan", _change(self.plan), methods=["POST"]),
            Route("/api/advice", _change(self.advice), methods=["POST"]),
            Route("/api/papers/{name}/report", _change(self.reproduce), methods=["POST"]),
            Mount("/", StaticFiles(directory=PAGE, html=True)),
        ]
        return Starlette(routes=routes)

    # Runs

    def names(self, request: Request) -> Any:
        return {**known_names(), "programs": plans.program_names(), "opened": self.opened}

    def runs(self, request: Request) -> Any:
        return self.library.listed()

    def run(self, request: Request) -> Any:
        run = self.library.run(request.path_params["key"])
        return {
            **describe_run(run),
            "facts": run.facts,
            "counts": run.counts,
            "notes": run.notes,
            "objects": recorded_views.objects_of(run),
            "object_table": run.tables["objects"],
            "launches": recorded_views.launches_of(run),
            "trace": str(run.inputs["trace"]),
        }

    def progress(self, request: Request) -> Any:
        return {"touches": self.library.progress.get(request.path_params["key"])}

    def charts(self, request: Request) -> Any:
        recording = self._recording(
            request, _view(request) if "x0" in request.query_params else None
        )
        return {
            "books": recorded_views.charts(recording),
            "touches_per_bin": recording.touches_per_bin,
            "regions": recording.regions,
            "regions_per_cell": recording.regions_per_cell,
            "page_bytes": self.library.run(request.path_params["key"]).facts["page_bytes"],
        }

    def tile(self, request: Request) -> Response:
        layer = request.query_params.get("layer", "touches")
        view, key = _view(request), request.path_params["key"]
        whole = whole_of(self.library.recording(key))
        recording = self._recording(request, view)
        against = request.query_params.get("against")
        if against:
            if self.library.run(key).inputs["trace"] != self.library.run(against).inputs["trace"]:
                raise TidegateError("two runs must be of the same trace to be compared")
            other = self._recording(request, view, against)
            made = difference(recording, other, whole, layer, view)
        else:
            made = tile(recording, whole, layer, view)
        return Response(
            zlib.compress(made.pixels.tobytes(), FAST),
            media_type="application/octet-stream",
            headers={
                "content-encoding": "deflate",
                "x-top": f"{made.top:g}",
                "x-touches-per-bin": str(recording.touches_per_bin),
                "x-finer": str(int(self._finer(key, view) is not None)),
            },
        )

    def cell(self, request: Request) -> Any:
        view, key = _view(request), request.path_params["key"]
        whole = whole_of(self.library.recording(key))
        recording = self._recording(request, view)
        x, y = _number(request, "x", float), _number(request, "y", float)
        return recorded_views.cell(recording, self.library.run(key), whole, view.axis, x, y)

    def story(self, request: Request) -> Any:
        key, region = request.path_params["key"], _number(request, "region")
        recording = self.library.recording(key, Window(first_region=region, regions=1))
        return recorded_views.story(recording, self.library.run(key))

    def _recording(self, request: Request, view: View | None, key: str = "") -> Recording:
        """Return the whole recording, or with ``detail=1`` a finer one of the view."""
        key = key or request.path_params["key"]
        window = self._finer(key, view) if request.query_params.get("detail") == "1" else None
        return self.library.recording(key, window)

    def _finer(self, key: str, view: View | None) -> Window | None:
        if view is None:
            return None
        return recorded_views.finer_window(self.library.recording(key), view)

    # Jobs

    def job(self, request: Request) -> Any:
        return self.jobs.find(request.path_params["number"]).to_json()

    def figure(self, request: Request) -> Response:
        job = self.jobs.find(request.path_params["number"])
        if job.figure is None or job.state != "done":
            raise TidegateError(f"job {job.number} has no figure")
        return Response(job.figure(), media_type="image/svg+xml")

    def cancel(self, request: Request, asked: dict[str, Any]) -> Any:
        job = self.jobs.find(request.path_params["number"])
        job.cancel()
        return job.to_json()

    def race(self, request: Request, asked: dict[str, Any]) -> Any:
        spec = races.read_race(asked, self.allowed)
        return self.jobs.start("race", lambda job: races.race(job, spec, self.library)).to_json()

    def curves(self, request: Request, asked: dict[str, Any]) -> Any:
        spec = races.read_workload(asked, self.allowed)
        return self.jobs.start("curves", lambda job: races.curves(job, spec)).to_json()

    def plan(self, request: Request, asked: dict[str, Any]) -> Any:
        self.allowed.check(asked.get("machine"), asked.get("placement"))
        return self.jobs.start("plan", lambda job: plans.plan(job, asked)).to_json()

    def advice(self, request: Request, asked: dict[str, Any]) -> Any:
        advices.check_advice(asked, self.allowed)
        return self.jobs.start("advice", lambda job: advices.advise(job, asked)).to_json()

    # Papers

    def list_papers(self, request: Request) -> Any:
        return self.papers.names()

    def paper(self, request: Request) -> Any:
        return self.papers.report(request.path_params["name"])

    def exhibit(self, request: Request) -> Response:
        name = request.query_params.get("exhibit", "")
        svg = self.papers.figure(request.path_params["name"], name)
        return Response(svg, media_type="image/svg+xml")

    def reproduce(self, request: Request, asked: dict[str, Any]) -> Any:
        name = request.path_params["name"]
        self.papers.report(name)  # refuse an unknown one
        return self.jobs.start("paper", lambda job: self.papers.reproduce(job, name)).to_json()


def _picture_of_cards(request: Request) -> Response:
    return Response(cards.picture(), media_type="image/svg+xml")


async def _live(request: Request) -> Response:
    return StreamingResponse(_live_events(request), media_type="text/event-stream")


async def _live_events(request: Request) -> AsyncIterator[str]:
    """Yield server-sent events: this user's arenas, with rates since the event before."""
    before: list[dict[str, Any]] = []
    while not await request.is_disconnected():
        now = await asyncio.to_thread(running_arenas, True)
        yield f"data: {json.dumps(rates(before, now))}\n\n"
        before = now
        await asyncio.sleep(LIVE_SECONDS)


def _answer(method: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that answers in a thread; an error becomes one line."""

    async def endpoint(request: Request) -> Response:
        return await _answered(lambda: method(request))

    return endpoint


def _change(method: Callable[[Request, Any], Any]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that takes a JSON object."""

    async def endpoint(request: Request) -> Response:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > LARGEST_BODY:
                return JSONResponse({"error": "the request is too large"}, 413)
        return await _answered(lambda: method(request, _object(bytes(body))))

    return endpoint


async def _answered(work: Callable[[], Any]) -> Response:
    try:
        found = await asyncio.to_thread(work)
    except TidegateError as error:
        return JSONResponse({"error": " ".join(str(error).split())}, 400)
    return found if isinstance(found, Response) else JSONResponse(found)


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise TidegateError("the request must be JSON, got something else") from None
    if not isinstance(found, dict):
        raise TidegateError("the request must be a JSON object, got something else")
    return found


def _view(request: Request) -> View:
    """Read a view from the query."""
    given: dict[str, Any] = {}
    for name, to in (("x0", float), ("x1", float), ("y0", float), ("y1", float)):
        if name in request.query_params:
            given[name] = _number(request, name, to)
    for name in ("width", "height"):
        if name in request.query_params:
            given[name] = _number(request, name)
    return View(**given, axis=request.query_params.get("axis", "touches"))


def _number(request: Request, name: str, to: Callable[[str], Any] = int) -> Any:
    text = request.query_params.get(name, "")
    try:
        return to(text)
    except ValueError:
        raise TidegateError(f"{name} must be a number, got '{text}'") from None
