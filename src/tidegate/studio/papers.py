"""Papers: the ledger of each paper, from a report that was opened or made here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tidegate.display.figures import svg_text
from tidegate.errors import TidegateError
from tidegate.papers import find_paper, find_setup, paper_names
from tidegate.papers.ledger import load_claims
from tidegate.studio.jobs import Job


class Papers:
    """Reports by paper."""

    def __init__(self) -> None:
        self._reports: dict[str, dict[str, Any]] = {}
        self._exhibits: dict[str, dict[str, Any]] = {}

    def names(self) -> list[dict[str, Any]]:
        """Return every paper with its title and whether there is a report."""
        return [
            {"name": n, "title": find_setup(n).citation, "reported": n in self._reports}
            for n in paper_names()
        ]

    def open(self, data: Any, source: str) -> list[str]:
        """Add the papers of a report, as ``reproduce --json`` prints it; return their names."""
        reports = data if isinstance(data, list) else [data]
        if not reports or not all(isinstance(r, dict) and "ledger" in r for r in reports):
            raise TidegateError(f"{source} must hold what reproduce --json prints, got other data")
        for report in reports:
            self._reports[report["paper"]] = report
        return [report["paper"] for report in reports]

    def report(self, name: str) -> dict[str, Any]:
        """Return the report of a paper; without one, its claims alone."""
        claims = load_claims(name)
        words = {c.id: {"text": c.text, "where": c.where} for c in claims.claims}
        found = self._reports.get(name, {"paper": name, "title": find_setup(name).citation})
        return {**found, "claims": words, "drawn": sorted(self._exhibits.get(name, ()))}

    def figure(self, name: str, exhibit: str) -> str:
        """Return an exhibit of a report that was made here, as SVG."""
        drawn = self._exhibits.get(name, {})
        if exhibit not in drawn:
            raise TidegateError(
                f"exhibit must be one of {', '.join(drawn) or 'none'}, got {exhibit}"
            )
        return svg_text(drawn[exhibit].draw())

    def reproduce(self, job: Job, name: str) -> None:
        """Make the quick report of a paper."""
        paper, setup = find_paper(name), find_setup(name).quick()
        job.total, job.unit = paper.size(setup), "runs"

        def progress(runs: int) -> None:
            job.done += runs
            job.advance()

        done = paper.reproduce(setup, workers=1, progress=progress)
        self._reports[name] = json.loads(json.dumps(done.to_json(), default=str))
        self._exhibits[name] = {e.name: e for e in done.exhibits}
        job.result = {"paper": name, "summary": done.ledger.summary}


def read_json(path: Path) -> Any:
    """Return the data of a JSON file. Raise TidegateError if it is not one."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TidegateError(f"{path} must be a JSON file, got one that cannot be read") from error
