"""``python -m tidegate``, and the ``tidegate`` command."""

from __future__ import annotations

from tidegate.interrupts import block_interrupts, exiting_on_interrupt


def main() -> None:
    """Import the command line and run it."""
    with exiting_on_interrupt():
        from tidegate import cli

        block_interrupts()
    cli.main()


if __name__ == "__main__":
    main()
