"""The walk of one live fault through the source, as docs/concepts.md draws it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from live.test_failures import OPEN, run

pytestmark = pytest.mark.live
MOST = 14
CONCEPTS = Path(__file__).parents[2] / "docs" / "concepts.md"
# a sitecustomize.py that writes the files whose functions one turn of the pager calls
PROFILE = """
import sys
if any("tidegate.live.pager.supervisor" in argument for argument in sys.orig_argv):
    from tidegate.live.pager.pager import Pager
    take_turn = Pager._take_turn

    def profiled(self, events):
        files, before = set(), dict(self._engine.count)
        note = lambda frame, *_: files.add(frame.f_code.co_filename)
        sys.setprofile(note)
        take_turn(self, events)
        self._mover.settle()
        sys.setprofile(None)
        after = self._engine.count
        if all(after[c] > before[c] for c in ("faults", "evictions", "observations")):
            with open({out!r}, "w") as out:
                out.write("\\n".join(files))

    Pager._take_turn = profiled
"""
PASSES = f"""{OPEN.replace("**", 'eviction="lru", prefetch="none", **')}
a = arena.empty(4 << 20, "u1")
for _ in range(2):
    a[:: 16 << 10] += 1
arena.close()
"""


def test_a_fault_with_a_victim_and_a_sample_passes_fourteen_files(tmp_path: Path) -> None:
    out = tmp_path / "files"
    (tmp_path / "sitecustomize.py").write_text(PROFILE.format(out=str(out)))
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run(PASSES, env=os.environ | {"PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    files = set(re.findall(r"/tidegate/(.*\.py)", out.read_text()))
    assert len(files) <= MOST, sorted(files)
    page = CONCEPTS.read_text()
    assert not {name for name in files if name not in page}
