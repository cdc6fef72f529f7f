"""Machines: one frozen dataclass, one TOML file per preset, every constant with its source."""

from tidegate.machine.machine import (
    Driver,
    Link,
    Machine,
    Near,
    Storage,
    load_machine,
    preset_names,
)

__all__ = ["Driver", "Link", "Machine", "Near", "Storage", "load_machine", "preset_names"]
