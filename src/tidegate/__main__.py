"""``python -m tidegate``, and the ``tidegate`` command."""

from __future__ import annotations

from tidegate.compiled.own_process import mark_own_process
from tidegate.interrupts import block_interrupts, exiting_on_interrupt


def main() -> None:
    """Import the command line and run it."""
    mark_own_process()
    with exiting_on_interrupt():
        from tidegate import cli

        block_interrupts()
    cli.main()


if __name__ == "__main__":
    main()
