"""How a mechanism calls policies, compiled or in Python, and runs again what failed when compiled.

A policy is called through one C function, ``int64 (block, event)``. For a policy that runs in
Python that function is an adapter around the object's methods; for a compiled one it is its
compiled class, and ``block`` is the address of its state. The mechanism knows both by their
addresses (``intrinsics.call_at``), so one compiled engine serves them all.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tidegate.errors import PolicyError
from tidegate.policies.interface.declaration import WITHOUT_NUMBER, handled_events
from tidegate.policies.interface.events import EVENT_BITS, FAILED
from tidegate.policies.interface.header import FAILURE, OWN
from tidegate.policies.interface.policy import Policy, label
from tidegate.policy_compiler.bounded import bound_policy, pass_rounds
from tidegate.policy_compiler.checked import check_policy
from tidegate.policy_compiler.compiled import Compiled, Twin
from tidegate.policy_compiler.source import CannotCompile, restore_class
from tidegate.registry import error_line

_C_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_KINDS = (1 << EVENT_BITS) - 1
# calls of policies from which a class of a user's is compiled: as long as compiling would take
LONG_RUN = 500_000


class WrongAnswer(TypeError):
    """What was answered, and what was expected."""


class Question(NamedTuple):
    """An event that is a question: how the mechanism's number is made of an answer."""

    convert: Callable[[Any], int]
    expected: str  # for messages
    none: int | None = None  # the number of None, which is no answer otherwise


_IGNORED = Question(lambda answer: 0, "", 0)  # in place of a question
_NO_ANSWER = object()


class Caller:
    """Calls a Python policy.

    ``names``: the method of each event that the mechanism sends, of which ``questions`` must be
    answered. What the policy raises is kept in ``failure`` and reported to the mechanism as FAILED,
    after a call of ``on_failure``.
    """

    own = 0

    def __init__(
        self,
        policy: Policy,
        names: Mapping[int, str],
        questions: Mapping[int, Question],
        on_failure: Callable[[], None] = lambda: None,
    ):
        bound_policy(policy)
        self.failure: BaseException | None = None
        self._policy, self._names, self._failed_at = policy, names, 0
        self.events = list(names)
        self.methods = methods = {event: getattr(policy, name) for event, name in names.items()}
        plain = {
            event: (methods[event], *questions.get(event, _IGNORED))
            for event, name in names.items()
            if name in WITHOUT_NUMBER
        }
        numbered = {e: questions[e] for e in questions.keys() & names.keys() - plain.keys()}

        def call(own: int, event: int) -> int:
            answer = _NO_ANSWER
            try:
                if event <= _KINDS and event in plain:  # the comparison is quicker
                    ask, convert, _, none = plain[event]
                    answer = ask()
                    return none if answer is None and none is not None else convert(answer)
                if numbered and event & _KINDS in numbered:
                    answer = methods[event & _KINDS](event >> EVENT_BITS)
                    return numbered[event & _KINDS].convert(answer)
                methods[event & _KINDS](event >> EVENT_BITS)
                return 0
            except BaseException as error:
                self.failure, self._failed_at = error, event
                if answer is not _NO_ANSWER and isinstance(error, Exception):
                    expected = questions[event & _KINDS].expected
                    self.failure = WrongAnswer(f"{answer!r}; expected {expected}")
                on_failure()
                return FAILED

        self._c = _C_SIGNATURE(call)
        self.address = ctypes.cast(self._c, ctypes.c_void_p).value or 0

    def failures(self) -> list[BaseException]:
        """Return what the policy raised."""
        return [self.failure] if self.failure else []

    def raise_failure(self, with_line: bool) -> None:
        """Raise PolicyError if the policy failed; ``with_line`` names lines of Tidegate's too."""
        if self.failure is None:
            return
        name, number = self._names[self._failed_at & _KINDS], self._failed_at >> EVENT_BITS
        where = f"{name}()" if name in WITHOUT_NUMBER else f"{name}({number})"
        if isinstance(self.failure, WrongAnswer):
            what = f"answered {where} with {self.failure}"
        else:
            what = f"raised in {where}: {error_line(self.failure, type(self._policy), with_line)}"
        raise PolicyError(f"policy '{label(self._policy)}' {what}") from self.failure

    def unpack(self) -> bool:
        """Return that the policy has its state: it is its own."""
        return True


class CompiledCaller:
    """Calls a compiled policy: nothing stands in between.

    Policies it is made of have callers of their own.
    """

    def __init__(
        self,
        policy: Policy,
        compiled: Compiled | Twin,
        parts: Sequence[Caller | CompiledCaller],
        mechanism: Mechanism,
    ):
        self._policy, self._compiled, self._parts = policy, compiled, parts
        self._regions = mechanism.regions
        self._table = np.array([_row(part) for part in parts], np.int64)
        self._block = mechanism.make_block(policy, compiled, self._table)
        self.events = handled_events(policy)
        self.own = self._block.ctypes.data
        self.address = compiled.address

    @property
    def failed(self) -> bool:
        """Whether the policy raised; it does if one of its parts did."""
        return bool(self._block[FAILURE])

    def failures(self) -> list[BaseException]:
        """Return what parts that run in Python raised; what compiled code raised is not known."""
        return [failure for part in self._parts for failure in part.failures()]

    def raise_failure(self, with_line: bool) -> None:
        """Do nothing: the run is made again in Python."""

    def unpack(self) -> bool:
        """Give the policy its state back; return whether all of it is there."""
        parts = [part.unpack() for part in self._parts]
        self._compiled.unpack(self._policy, self._block[OWN:], self._regions)
        return all(parts) and isinstance(self._compiled, Compiled)


def _row(part: Caller | CompiledCaller) -> tuple[int, int, int]:
    """Return how a compiled policy calls one that it is made of: see header.py."""
    return part.address, part.own, sum(1 << event for event in part.events)


class Mechanism(Protocol):
    """What a mechanism supplies so that its policies can be called."""

    @property
    def regions(self) -> int: ...

    def make_caller(self, policy: Policy) -> Caller:
        """Return a caller of a policy that runs in Python."""

    def compile(self, policy: Policy, sees: str, only_known: bool) -> Compiled | Twin | None:
        """Compile a policy for this mechanism: see compile_policy."""

    def make_block(self, policy: Policy, compiled: Any, parts: Any) -> NDArray[np.int64]:
        """Return a compiled policy's block, its header filled in."""


class Choice(NamedTuple):
    """How a policy is called; ``later``: it may be compiled yet; ``reason``: why it cannot be."""

    caller: Caller | CompiledCaller
    later: bool = False
    reason: str = ""


def choose_caller(policy: Policy, mechanism: Mechanism, long: bool) -> Choice:
    """Compile a policy if it pays.

    What comes with Tidegate is compiled at once: it is compiled once and then cached. Other classes
    are compiled when a run turns out to be ``long``, or if they are in the cache.
    """
    restore_class(policy)  # it may have begun in Python
    try:
        only_known = not (long or _is_shipped(policy))
        made = _compiled_caller(policy, str(policy.sees), mechanism, only_known)
    except CannotCompile as why:
        return Choice(mechanism.make_caller(policy), reason=str(why))
    return Choice(made) if made else Choice(mechanism.make_caller(policy), later=True)


def _compiled_caller(
    policy: Policy, sees: str, mechanism: Mechanism, only_known: bool
) -> CompiledCaller | None:
    """Return a caller; None if a class would have to be compiled first. Parts may run in Python."""
    compiled = mechanism.compile(policy, sees, only_known)
    parts: list[Any] = []
    for part in policy.parts:
        try:
            parts.append(_compiled_caller(part, sees, mechanism, only_known))
        except CannotCompile:
            parts.append(mechanism.make_caller(part))
    if compiled is None or None in parts:
        return None
    return CompiledCaller(policy, compiled, parts, mechanism)


def _is_shipped(policy: Policy) -> bool:
    """Return whether a policy, and those it is made of, come with Tidegate."""
    own = type(policy).__module__.startswith("tidegate.")
    return own and all(_is_shipped(part) for part in policy.parts)


class CompiledFailure(Exception):
    """A compiled policy raised, or answered something wrong."""


class PolicyRun(ABC):
    """Base of the simulations: starts their policies, chooses how each is called, and runs again
    in Python what failed when compiled, for the exact error, its file and its line.
    """

    compiled: bool  # compile policies where that is possible and pays
    checked: bool  # run policies in Python and check what compiled code would not: see checked.py
    notes: list[str]  # what a person should know of this run
    _policies: tuple[Policy, ...]
    _choices: list[Choice]

    def run(self, progress: Callable[[int], None] = lambda touches: None) -> None:
        """Play the whole trace.

        Raise PolicyError or BooksError if a policy or the simulator is wrong.
        """
        try:
            self._run(progress)
        except CompiledFailure:
            again = self._in_python()
            again.run()
            again.notes.append("a compiled policy failed, but not in Python; please report this")
            vars(self).update(vars(again))
        finally:
            for policy in self._policies:
                restore_class(policy)

    def reasons(self) -> list[str]:
        """Return for each policy why it runs in Python, "" if it is compiled; without a run."""
        self._start()
        return [self._choose(policy, long=True).reason for policy in self._policies]

    # What a simulation supplies

    @abstractmethod
    def _run(self, progress: Callable[[int], None]) -> None:
        """Start the policies and play the whole trace, then check the books."""

    @abstractmethod
    def _in_python(self) -> Self:
        """Return the same run, set up anew, checked and not compiled."""

    @abstractmethod
    def _attach(self) -> Mechanism:
        """Give the policies their memories; return the mechanism that calls them."""

    @abstractmethod
    def _connect(self) -> None:
        """Tell the engine how to call the policies."""

    @abstractmethod
    def _calls(self) -> int:
        """Return about how many times policies were called so far."""

    # The way of the policies through a run

    def _start(self) -> None:
        """Start the policies, and choose how each is called."""
        self._mechanism, self._choices = self._attach(), []
        for policy in self._policies:
            pass_rounds(policy)
            self._guard(policy, "start", policy.start)
            # a compiled policy begins with what ``start`` has set
            if self.checked:
                check_policy(policy, self._mechanism.regions)
            self._choices.append(self._choose(policy, long=False))
        self._connect()

    def _choose(self, policy: Policy, long: bool) -> Choice:
        if self.compiled and not self.checked:
            return choose_caller(policy, self._mechanism, long)
        return Choice(self._mechanism.make_caller(policy))

    def _compile_later(self) -> None:
        """Compile what was not worth it before, if this has become a long run."""
        if any(choice.later for choice in self._choices) and self._calls() > LONG_RUN:
            for which, policy in enumerate(self._policies):
                if self._choices[which].later:
                    self._choices[which] = self._choose(policy, long=True)
            self._connect()

    def _finish(self) -> None:
        """Let the policies check themselves, and note which long runs were in Python."""
        for policy, choice in zip(self._policies, self._choices, strict=True):
            if choice.caller.unpack():
                self._guard(policy, "finished", policy.finished)
            if choice.reason and self._calls() > LONG_RUN:
                self.notes.append(f"policy '{label(policy)}' runs in Python: {choice.reason}")

    def _guard(self, policy: Policy, call: str, method: Callable[[], None]) -> None:
        try:
            method()
        except Exception as error:
            raise PolicyError(
                f"policy '{label(policy)}' raised in {call}(): {error_line(error, type(policy))}"
            ) from error

    def _raise_failure(self) -> None:
        """Raise what a policy raised; CompiledFailure if a compiled one may have failed."""
        callers = [choice.caller for choice in self._choices]
        failures = [failure for caller in callers for failure in caller.failures()]
        for failure in failures:
            if isinstance(failure, KeyboardInterrupt):
                raise failure
        if any(isinstance(c, CompiledCaller) and (c.failed or not failures) for c in callers):
            raise CompiledFailure
        for caller in callers:
            caller.raise_failure(self.checked)
