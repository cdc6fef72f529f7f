"""``python -m tidegate``, and the ``tidegate`` command."""

from __future__ import annotations

from tidegate.interrupts import hold_back, starting


def main() -> None:
    """Import the command line and run it."""
    with starting():
        from tidegate import cli

        hold_back()
    cli.main()


if __name__ == "__main__":
    main()
