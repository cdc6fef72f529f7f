"""What ``tidegate`` alone shows: the five things people come for."""

from __future__ import annotations

from tidegate.cli import output

USES = (
    ("race policies on a simulated GPU", "tidegate compare matmul --oversubscribe 50%"),
    ("record your own program", "tidegate record torch train.py -o step.parquet"),
    ("get advice: does it fit, what to do", "tidegate advise step.parquet --near 24GiB"),
    ("run a script in less RAM", "tidegate live run --near 4GiB script.py"),
    ("look into runs on a web page", "tidegate studio"),
)


def welcome() -> None:
    """Print what a newcomer may type first."""
    from tidegate import __version__

    output.print_text(f"Tidegate {__version__}: run programs larger than their fast memory")
    output.print_table(["to", "type"], USES, left=2)
    output.print_text(
        "tidegate --help lists every verb, tidegate VERB --help its options.\n"
        "tidegate doctor says what this machine can do; tidegate examples copy DIR copies programs "
        "to begin with."
    )
