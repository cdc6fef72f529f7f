"""Optimise compiled functions once, in the function that Python calls.

Numba optimises every function with all that it calls, and emits its machine code: a function five
calls deep is optimised five times, and four of the five codes are never used. Here a function that
only compiled callers use stays as LLVM's IR until such an entry point is compiled, which links all
that it needs, optimises it and emits it as one. That halves the time of the core's first compile.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target

# Environments of linked functions, by the symbol through which code finds them. A symbol has an
# address only when an entry point with it is finished.
_environments: dict[str, Any] = {}


class EntryLibrary(JITCodeLibrary):
    """The code of an entry point, with that of the linked functions that it needs."""

    def __init__(self, codegen: Any, name: str):
        super().__init__(codegen, name)  # type: ignore[no-untyped-call]
        self.needed: dict[LinkedLibrary, None] = {}  # in the order of their calls

    def add_linking_library(self, library: Any) -> None:
        if isinstance(library, LinkedLibrary):
            self.needed |= {library: None} | library.needed
        else:
            super().add_linking_library(library)  # type: ignore[no-untyped-call]

    def finalize(self) -> None:
        for library in self.needed:
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library.own_module(), preserve=True)
            self._linking_libraries += library._linking_libraries
        super().finalize()  # type: ignore[no-untyped-call]
        codegen: Any = self._codegen
        for variable in self._final_module.global_variables:
            if variable.name in _environments:
                codegen.set_env(variable.name, _environments[variable.name])


class LinkedLibrary(EntryLibrary):
    """The IR of a function that only compiled callers use."""

    def finalize(self) -> None:
        self._final_module.verify()
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def own_module(self) -> Any:
        """Return the module without what it calls."""
        return super()._get_module_for_linking()  # type: ignore[no-untyped-call]

    def _get_module_for_linking(self) -> Any:
        """Return the module with all it calls, for callers that Numba makes itself."""
        whole = self.own_module().clone()
        for library in self.needed:
            whole.link_in(library.own_module(), preserve=True)
        return whole

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # there is no machine code

    @property
    def codegen(self) -> Any:
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Keep an environment until its symbol has an address."""
        _environments[name] = environment


class EntryCompiler(Compiler):
    """Numba's compiler, for functions that Python or C calls."""

    library_class = EntryLibrary

    def __init__(
        self,
        typing: Any,
        target: Any,
        library: Any,
        args: Any,
        returns: Any,
        flags: Any,
        local: Any,
    ):
        if library is None:
            library = self.library_class(cpu_target.target_context.codegen(), "tidegate")
            library.enable_object_caching()
        super().__init__(typing, target, library, args, returns, flags, local)  # type: ignore[no-untyped-call]


class LinkedCompiler(EntryCompiler):
    """Numba's compiler, for functions that only compiled callers use."""

    library_class = LinkedLibrary
