"""The "optimistic" HMM of 3.6: HMM's run, with the hit rates of GMT-Reuse and less I/O time.

As in the paper it is computed, not run: HMM's time for SSD reads is lowered to the share of its
pages that GMT-Reuse reads. Its driver waits for every read, so all of that time shows.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.experiments.runs import Run
from tidegate.papers.results import Results

OPTIMISTIC = "hmm-optimistic"


def with_optimistic(results: Results) -> Results:
    """Return the results and, where HMM and GMT-Reuse were run, the optimistic HMM."""
    added = {
        (a, OPTIMISTIC): optimistic_run(run, results.runs[a, "tier-reuse"])
        for (a, system), run in results.runs.items()
        if system == "hmm" and (a, "tier-reuse") in results.runs
    }
    return Results(added | dict(results.runs))


def optimistic_run(hmm: Run, reuse: Run) -> Run:
    """Return HMM's run with as many pages read as GMT-Reuse reads, if those are fewer."""
    read = hmm.counts["far_reads"] + hmm.counts.get("read_ahead", 0)
    share = min(1.0, reuse.counts["far_reads"] / max(1, read))
    saved = (1 - share) * hmm.busy.get("storage_read", 0.0)
    waited = max(0.0, hmm.parts.get("fault_handling", 0.0) - saved)
    return replace(hmm, parts=hmm.parts | {"fault_handling": waited})
