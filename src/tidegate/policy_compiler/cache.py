"""Compiled policies on disk, and in this process; refusals too, for they take as long to find."""

from __future__ import annotations

import functools
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core import serialize
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from tidegate.compiled.jit import compiled_folder
from tidegate.compiled.turns import own_turn
from tidegate.errors import TidegateError
from tidegate.files import write_atomically
from tidegate.policies.interface.declaration import handled_events
from tidegate.policies.interface.policy import Policy
from tidegate.policy_compiler.layout import Layout
from tidegate.policy_compiler.source import CannotCompile, digest

_REFUSAL = b"?"  # a file that begins so holds a reason, in place of code


class Function:
    """A compiled function: its address, and the library that holds its code."""

    def __init__(self, result: Any):
        self._library = result.library
        self.address = self._library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)


_known: dict[str, Function | str] = {}


@global_compiler_lock
def find_function(
    policy: Policy, layout: Layout, surface: str, sees: str, only_known: bool = False
) -> Function | None:
    """Return a policy's compiled function for a surface; compile it unless it is known.

    With ``only_known``, return None instead of compiling. Raise CannotCompile with the reason.
    """
    events = handled_events(policy)
    cls = type(policy)
    made_for = (surface, sees, repr(events), str(policy.most_rounds), numba.__version__, _target())
    key = digest(cls, layout.signature, *made_for)
    file = _folder() / f"{cls.__name__}-{key}"
    if key not in _known:
        found = _load(file)
        if found is None:
            if only_known:
                return None
            # another process may have compiled it meanwhile
            with own_turn(compiled_folder(), key):
                found = _load(file) or _compile(policy, layout, surface, sees, events, key, file)
        _known[key] = found
    known = _known[key]
    if isinstance(known, str):
        raise CannotCompile(known)
    return known


@functools.cache
def _target() -> str:
    return repr(cpu_target.target_context.codegen().magic_tuple())


def _folder() -> Path:
    """Return where compiled policies are kept; a place that does not exist if there is none."""
    return Path(compiled_folder() or os.devnull) / "policies"


def _compile(
    policy: Policy, layout: Layout, surface: str, sees: str, events: list[int], key: str, file: Path
) -> Function | str:
    from tidegate.policy_compiler.compiler import compile_class
    from tidegate.policy_compiler.explain import explain
    from tidegate.policy_compiler.gpu_surface import GPU
    from tidegate.policy_compiler.tier_surface import TIERS

    shown = next(s for s in (GPU, TIERS) if s.name == surface)
    try:
        result = compile_class(type(policy), layout, shown, sees, events, policy.most_rounds, key)
    except Exception as error:  # whatever it is: the class runs in Python
        reason = explain(error, type(policy))
        _save(file, _REFUSAL + reason.encode())
        return reason
    function = Function(result)
    _save(file, serialize.dumps(result._reduce()))  # type: ignore[no-untyped-call]
    return function


def _load(file: Path) -> Function | str | None:
    try:
        content = file.read_bytes()
    except OSError:
        return None
    if content.startswith(_REFUSAL):
        return content[1:].decode()
    try:
        context = cpu_target.target_context
        # Numba's runtime, which the code may need, is not there yet if nothing else was compiled
        context.refresh()  # type: ignore[no-untyped-call]
        return Function(CompileResult._rebuild(context, *pickle.loads(content)))  # type: ignore[no-untyped-call]
    except Exception:  # a file that is damaged is written anew
        return None


def _save(file: Path, content: bytes) -> None:
    """Write a file whole or not at all; a disk that is full is no reason to fail."""
    with suppress(OSError, TidegateError):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content)
