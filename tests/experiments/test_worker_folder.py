"""No code of the working folder runs in a worker process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tidegate.experiments.sweeps.processes import Processes


def test_workers_start_without_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("json", "socket", "signal", "pickle", "selectors"):
        (tmp_path / f"{name}.py").write_text("import os\nos._exit(9)\n")
    monkeypatch.chdir(tmp_path)
    workers = Processes(1)
    connection = workers._start()
    assert connection.poll(200)
    assert connection.recv() == "ready"
    workers.stop()
    assert "PYTHONSAFEPATH" not in os.environ
