"""What CPPE leaves open (--robustness)."""

from __future__ import annotations

from dataclasses import replace

from tidegate.experiments.specification import RunSpec
from tidegate.machine.machine import load_machine
from tidegate.reproduce.cppe.grid import specify
from tidegate.reproduce.cppe.setup import MACHINE, OWN, Setup
from tidegate.reproduce.readings import Reading, Readings, own_options, spell_policy
from tidegate.reproduce.results import Key

# Option → values, the default first.
OPEN = {
    "mhpe.counts": ("pages", "faults"),  # what an interval counts
    "mhpe.skip": ("new", "nothing"),  # what the MRU search passes over before the forward distance
    "mhpe.patterns": ("lru", "always"),  # when patterns are recorded
    "lru.recency": ("migration", "access"),  # of the baseline
    "machine.faults": (16, 64),  # served together
    "machine.jitter": (0.0, 0.05),  # do SMs run in step, or drift apart?
}
DEPENDS = {"sl+lru": ("lru",), "sl-stop+lru": ("lru",), **dict.fromkeys(OWN, ("mhpe",))}


def specify_reading(setup: Setup, key: Key, options: Reading) -> RunSpec:
    """Return a run of the grid under a reading's options."""
    application, system, level = key
    run = specify(setup, setup.applications[application], system, level)
    machine = load_machine(MACHINE)
    driver = replace(machine.driver, batch_faults=options["machine.faults"])
    near = replace(machine.near, jitter=options["machine.jitter"])
    run = replace(run, machine=replace(machine, driver=driver, near=near))
    if system in OWN:
        mhpe = spell_policy(str(run.eviction), own_options("mhpe", options))
        return replace(run, eviction=mhpe)
    return replace(run, eviction="lru-ideal") if options.get("lru.recency") == "access" else run


READINGS: Readings[Setup] = Readings(
    OPEN,
    ("machine",),
    DEPENDS,
    specify_reading,
    includes=lambda setup, key, number: key[2] in setup.levels,  # not the crossing
)
