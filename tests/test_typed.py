"""The public surface as a type checker sees it: programs that are right pass ``mypy --strict``,
wrong keywords and values do not.
"""

from __future__ import annotations

import pytest
from mypy import api

RIGHT = """
import tidegate
from tidegate.plugins import eviction
from tidegate.policy import EvictionPolicy, Option, Order, Samples, Tier, TierPolicy, first
from tidegate.workload import Launch, Workload, blocks_of


@eviction("mine")
class Mine(EvictionPolicy):
    sees = Samples(regions=100)
    lag = Option(3, "regions that stay", least=0)

    def on_fault(self, region: int) -> None:
        self.order.move_to_tail(region)

    def victim(self) -> int:
        return self.order.head


class Alternate(TierPolicy):
    def place(self, page: int) -> Tier:
        return Tier.MIDDLE if page % 2 else Tier.FAR


run: tidegate.Run = tidegate.run("matmul", eviction=Mine, near="1GiB", slots=1)
race: tidegate.Comparison = tidegate.compare(["MM", "LU"], ["lrm", Mine], near=["1GiB", 1 << 29])
systems: tidegate.Comparison = tidegate.compare("MM", system="uvm", oversubscribe=[0.5, "100%"])
distinct: int = tidegate.analyze("zipf", shards="1%").distinct
advice: tidegate.Advice = tidegate.advise("step.parquet", near="24GiB")
machine: tidegate.Machine = tidegate.load_machine("gh200")
trace: tidegate.Trace = tidegate.load_trace("loop.parquet")
tidegate.save_trace(trace, "again.parquet")
spec = tidegate.RunSpec(trace, machine, near="1GiB")
made: int = tidegate.Sweep([spec], "store").run(workers=1).made
with tidegate.Arena(near="1GiB") as arena:
    array = arena.empty((4, 4), "f4")
try:
    spec.run(cache=False)
except (tidegate.PolicyError, tidegate.TidegateError) as error:
    text: str = str(error)
"""
WRONG = {
    "tidegate.run('MM', nere='1GiB')": "call-arg",
    "tidegate.run('MM', slots='many')": "arg-type",
    "tidegate.compare('MM', systems=['uvm'])": "call-arg",
    "tidegate.advise('step.parquet', near=24.5)": "arg-type",
    "tidegate.EvictionPolicy": "attr-defined",
}


@pytest.mark.slow
def test_programs_are_checked(tmp_path):
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(RIGHT)
    wrong.write_text("import tidegate\n" + "\n".join(WRONG) + "\n")
    settings = ["--strict", "--config-file=", "--no-error-summary", "--hide-error-context"]
    found, problems, _ = api.run([*settings, f"--cache-dir={tmp_path}", str(right), str(wrong)])
    assert not problems
    lines = found.splitlines()
    assert not [line for line in lines if "right.py" in line]
    for number, code in enumerate(WRONG.values(), 2):
        assert any(f"wrong.py:{number}: error" in s and s.endswith(f"[{code}]") for s in lines)
