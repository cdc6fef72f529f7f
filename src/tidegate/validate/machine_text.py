"""Write a calibrated machine as a TOML file: each constant with its source and confidence.

What the probe says nothing of comes from a preset: as it is there if the preset is of the same
card, else marked L, a guess.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any

from tidegate import units
from tidegate.machine.machine import machine_file
from tidegate.validate.calibrate import Calibration, Fitted
from tidegate.validate.card import is_of_card, properties

_Table = dict[str, Any]

_ORDER = ("description", "offers", "geometry", "near", "rates", "link", "driver", "storage")


def machine_text(calibration: Calibration) -> str:
    """Return the TOML file of a calibrated machine."""
    like = calibration.like
    path = machine_file(like)
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if not is_of_card(like, calibration.probe):
        table.pop("rates", None)
        table.pop("storage", None)
        for section in ("near", "link", "driver"):
            for key, entry in table[section].items():
                table[section][key] = _guess(section, entry, path.stem)
    table.pop("name", None)
    table["description"] = f"{calibration.probe.card['card']}, calibrated"
    for said in properties(calibration.probe, like):
        table["near"][said.name] = {"value": said.text, "source": said.source}
    for one in calibration.constants:
        section, _, key = one.name.partition(".")
        table[section][key] = {"value": one.text, "source": _source(one)}
    return f"{_header(calibration, path.stem)}\n{_toml(table)}"


def _guess(section: str, entry: Any, like: str) -> Any:
    """Return a constant of another card: facts of the driver stay what they are."""
    value, source = (
        (entry, "") if not isinstance(entry, dict) else (entry["value"], entry.get("source", ""))
    )
    if section == "driver" and source.startswith("H:"):
        return entry
    return {"value": value, "source": f"L: as {like}"}


def _source(one: Fitted) -> str:
    return f"{one.confidence}: fitted on {one.points}: {one.text} ± {one.percent} %"


def _header(calibration: Calibration, like: str) -> str:
    """Return the comment at the beginning of the file."""
    probe = calibration.probe
    card = probe.card
    lines = [
        f"{card['card']}, calibrated by `tidegate calibrate`.",
        f"driver: {probe.driver}; CUDA: {card.get('cuda', 'unknown')}; "
        f"host: {card.get('host', 'unknown')}; date: {card.get('date', 'unknown')}",
        "Confidence of a source: H within 10 %, M within 35 %, L a guess or hardly measured.",
        f"What the probe does not measure is as {like}.",
    ]
    for one in calibration.held_out:
        lines.append(
            f"held out: {one.program.title}: simulated {units.show_duration(one.simulated)}, "
            f"measured {units.show_duration(one.measured)}: {one.ratio:.2f} ×"
        )
    lines += [f"note: {note}" for note in calibration.notes]
    return "".join(f"# {_one_line(line)}\n" for line in lines)


def _one_line(text: str) -> str:
    """Return a text without what a TOML comment cannot have."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _toml(table: _Table) -> str:
    """Return a machine's table as TOML."""
    head = [f"{key} = {_literal(table[key])}" for key in _ORDER[:2] if key in table]
    parts = ["\n".join(head)]
    for section in _ORDER[2:]:
        if section in table:
            rows = [f"{key} = {_literal(value)}" for key, value in table[section].items()]
            parts.append("\n".join([f"[{section}]", *rows]))
    return "\n\n".join(parts) + "\n"


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{key} = {_literal(part)}" for key, part in value.items())
        return f"{{ {inside} }}"
    return json.dumps(value, ensure_ascii=False)
