"""The policy that a person means: of any kind, by its name, or a class of the person's own file."""

from __future__ import annotations

from collections.abc import Callable

from tidegate.errors import TidegateError, UnknownName
from tidegate.options import spec_name, split_outside
from tidegate.policies.interface.policy import Policy
from tidegate.policies.prefetch.together import make_prefetch
from tidegate.policies.registries import eviction, placement, prefetch

KINDS: dict[str, Callable[[str], Policy]] = {
    "eviction": eviction.make,
    "prefetch": make_prefetch,
    "placement": placement.make,
}
_NAMES = {"eviction": eviction.names, "prefetch": prefetch.names, "placement": placement.names}


def find_policy(spec: str, kind: str | None = None) -> tuple[str, Policy]:
    """Return a policy and its kind: the first of eviction, prefetch and placement that has it."""
    if kind is not None:
        if kind not in KINDS:
            raise UnknownName("kind of policy", kind, KINDS)
        return kind, KINDS[kind](spec)
    parts = [spec_name(part) for part in split_outside(spec, "+")]
    if ".py" in spec:
        return _from_file(spec)
    for kind, names in _NAMES.items():
        known = [n.lower() for n in names()]
        if all(part.lower() in known for part in parts):
            return kind, KINDS[kind](spec)
    every = sorted({n for names in _NAMES.values() for n in names()})
    raise UnknownName("policy", next((p for p in parts if p not in every), spec), every)


def _from_file(spec: str) -> tuple[str, Policy]:
    errors = []
    for kind, make in KINDS.items():
        try:
            return kind, make(spec)
        except TidegateError as error:
            errors.append(error)
    raise errors[0]
