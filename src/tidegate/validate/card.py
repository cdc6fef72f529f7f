"""The card that a probe ran on: its preset, and what its properties say of a machine."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from tidegate import units
from tidegate.machine import Machine, load_machine, preset_names
from tidegate.validate.points import load_points
from tidegate.validate.probe import Probe

FALLBACK = "rtx5070ti-pcie5"
"""The preset for cards that have none: the one that most is measured of."""

_THREADS = 256  # of a thread block
_FLOP = 2  # operations of a fused multiply-add
_CORES = {  # FP32 cores of an SM by compute capability; CUDA guide, arithmetic throughput
    **dict.fromkeys(("6.0", "7.0", "7.2", "7.5", "8.0"), 64),
    **dict.fromkeys(("6.1", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "12.0", "12.1"), 128),
}
_SAME_SIZE = 0.2  # share by which the memory of cards of one name differs, at most
_MAKER = re.compile(r"NVIDIA|GeForce|Tesla|Quadro|Graphics", re.IGNORECASE)
_VERSION = re.compile(r"[3-9]\d\d")  # of a driver; points of papers give years or names
_VARIANT = re.compile(r"SXM\d*|PCIe?|\d+GB|HBM\w*", re.IGNORECASE)


@dataclass(frozen=True)
class Property:
    """A constant of near memory that the card itself says: its value, as text, and its source."""

    name: str
    value: float
    text: str | int
    source: str


def preset_of(probe: Probe) -> str | None:
    """Return the preset of the probe's card; None if it has none."""
    name, size = _model(probe.card["card"]), probe.number("bytes")
    found = []
    for preset in preset_names():
        machine = load_machine(preset)
        off = abs(machine.near.bytes - size)
        if _model(machine.description.partition(",")[0]) == name and off < _SAME_SIZE * size:
            found.append((off, preset))
    return min(found)[1] if found else None


def _model(card: str) -> str:
    """Return a card's model: 'NVIDIA A100-SXM4-40GB' is an A100."""
    words = _MAKER.sub(" ", card).replace("-", " ").split()
    return " ".join(word for word in words if not _VARIANT.fullmatch(word)).upper()


def notes_on(probe: Probe, like: str | None) -> list[str]:
    """Return what a user should know of the preset that the constants begin with."""
    card, own = probe.card["card"], preset_of(probe)
    if like is None and own is None:
        return [f"there is no preset of {card}; what was not measured is as {FALLBACK}, see --like"]
    if like in preset_names() and like != own:
        better = f"; {own} is its preset" if own else ""
        return [f"--like {like} is not of {card}{better}; what was not measured is a guess"]
    sources = (p.source for p in load_points() if p.source.machine == (like or own))
    drivers = {source.driver for source in sources if _VERSION.fullmatch(source.driver)}
    if not drivers or probe.driver.partition(".")[0] in drivers:
        return []
    known = ", ".join(sorted(drivers))
    return [
        f"the driver is {probe.driver}; {like or own} was measured with {known}, "
        "so its constants of the driver may differ"
    ]


def is_of_card(like: str, probe: Probe) -> bool:
    """Return whether a preset is of the probe's card; a user's own file is taken to be."""
    return like not in preset_names() or like == preset_of(probe)


def properties(probe: Probe, like: str) -> list[Property]:
    """Return the constants of near memory that the card's properties say.

    A preset of the same card knows its FLOPS better.
    """
    sms, size = probe.number("sms"), probe.number("bytes")
    blocks = probe.number("threads_per_sm") // _THREADS
    # two transfers in each cycle of the memory's clock
    rate = 2 * probe.number("memory_khz") * 1e3 * probe.number("bus_bits") / 8 / units.S
    cores = _CORES.get(probe.card.get("compute", ""), 0) * sms
    flops = 0.0 if is_of_card(like, probe) else _FLOP * cores * probe.number("clock_khz") / 1e9
    known = "device properties"
    found = [
        Property("sms", sms, sms, f"H: {known}"),
        Property("blocks_per_sm", blocks, blocks, f"H: {known}: threads of an SM / {_THREADS}"),
        Property("bytes", size, units.exact_size(size), f"H: {known}"),
        Property("bandwidth", rate, f"{rate:.4g}GB/s", f"M: {known}: memory clock × bus"),
        Property(
            "flops",
            flops * 1e3,
            f"{flops:.4g}TFLOPS",
            f"L: {known}: clock × SMs × cores, which follow from the compute capability",
        ),
    ]
    return [one for one in found if one.value]


def with_properties(machine: Machine, probe: Probe, like: str) -> Machine:
    """Return a machine with the constants that the card's properties say."""
    said: dict[str, Any] = {one.name: one.value for one in properties(probe, like)}
    return dataclasses.replace(machine, near=dataclasses.replace(machine.near, **said))
