"""Write the table of docs/driver.md: where each policy can run, and why not.

python scripts/driver_table.py
"""

from __future__ import annotations

import re
from pathlib import Path

from tidegate.driver.where import all_policies, where

PAGE = Path(__file__).parent.parent / "docs" / "driver.md"
BEGIN, END = "<!-- table: scripts/driver_table.py -->", "<!-- end of the table -->"
_NOISE = re.compile(r"^no: policy '[^']+' (?:cannot be emitted: )?")
_SHORT = (
    ("sees every touch", "sees every touch"),
    ("must know what each launch uses", "launches are not known"),
)
_MOST = 90
# what the preload library makes of a plan; docs/how-to/preload.md
_PRELOAD = {
    **dict.fromkeys(("rdm", "glm", "rlm", "object-lru", "host"), "yes"),
    "prefetch-all": "yes, but it does not evict",
    "explicit": "if all fits",
    **dict.fromkeys(("acbm", "tide"), "no: needs counters"),
    "um": "the driver's own",
}


def table() -> str:
    """Return the table, a row a policy."""
    head = "| policy | simulated | live | eBPF, checked | steered (gpu_ext) | modprobe | preload |"
    lines = [head, "|---|---|---|---|---|---|---|"]
    for kind, name in all_policies():
        ways = [_shown(text) for text in where(kind, name).values()]
        preload = "no: no events"
        if kind == "placement":
            preload = _PRELOAD.get(name, "no: copies beside kernels")
        shown = f"`{name}`" if kind == "eviction" else f"`{name}` ({kind})"
        lines.append(f"| {' | '.join([shown, *ways, preload])} |")
    return "\n".join(lines)


def _shown(text: str) -> str:
    """Return an answer as it fits a cell."""
    for part, short in _SHORT:
        if part in text:
            return f"no: {short}"
    text = _NOISE.sub("no: ", text).partition(": (yield")[0]
    text = re.sub(r", line \d+", "", text)  # it changes with every edit; ``emit`` says it
    text = re.split(r"; |,? which compiled code|, and the kernel| as inf", text)[0]
    return text if len(text) <= _MOST else text[: _MOST - 1] + "…"


def with_table(page: str) -> str:
    """Return a page with the present table."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text("utf-8")), "utf-8")
