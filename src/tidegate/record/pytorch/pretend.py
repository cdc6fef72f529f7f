"""Pretend: a GPU, for programs that ask for one, where there is none.

Tensors are CPU tensors (without data). A function mode rewrites devices: what is made on or moved
to a GPU is noted as being there, and says so when asked for its device. The functions of
``torch.cuda`` that scripts call are replaced while it is active.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.utils import clip_grad
from torch.optim import optimizer
from torch.overrides import TorchFunctionMode
from torch.utils import _device as default_device
from torch.utils._python_dispatch import _disable_current_modes

from tidegate.errors import TidegateError
from tidegate.record.pytorch.recorder import OperatorRecorder

_CPU, _GPU = torch.device("cpu"), torch.device("cuda", 0)
_MEMORY = 80 << 30  # bytes of the GPU that programs are told of
_FUNCTIONAL = torch.nn.functional
_NO_STATE = torch.empty(0)


class Redirect(TorchFunctionMode):
    """Rewrites devices of calls."""

    def __init__(self, recorder: OperatorRecorder):
        super().__init__()
        self._recorder = recorder
        self._handlers: dict[Any, Callable[..., Any]] = {
            torch.Tensor.device.__get__: self.device_of,  # type: ignore[attr-defined]
            torch.Tensor.is_cuda.__get__: lambda t: self._is_on_gpu(t),  # type: ignore[attr-defined]
            torch.Tensor.is_cpu.__get__: lambda t: not self._is_on_gpu(t),  # type: ignore[attr-defined]
            torch.Tensor.get_device: lambda t: 0 if self._is_on_gpu(t) else -1,
            torch.Tensor.cuda: lambda t, *a, **k: self._to_gpu(t),
            torch.Tensor.cpu: lambda t, *a, **k: self._to_host(t),
            torch.Tensor.to: self._to,
            torch.Tensor.pin_memory: lambda t, *a, **k: t,
            torch.Tensor.is_pinned: lambda t, *a, **k: True,
            torch.Tensor.record_stream: lambda t, *a, **k: None,
        }
        self._factories = default_device._device_constructors()
        self._depth = 0  # of PyTorch's own functions, which must see true devices

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self._recorder.inside:
            return function(*args, **kwargs)
        if function is torch.Tensor.backward:
            return self._backward(*args, **kwargs)
        self._depth += 1
        try:
            handler = self._handlers.get(function)
            return handler(*args, **kwargs) if handler else self._call(function, args, kwargs)
        finally:
            self._depth -= 1

    @property
    def is_honest(self) -> bool:
        """Whether tensors say that they are on the CPU, as they are."""
        return self._depth > 0 or self._recorder.inside

    def device_of(self, tensor: Any) -> Any:
        """Return the device that a program is told."""
        return _GPU if self._is_on_gpu(tensor) else _CPU

    def _backward(
        self,
        tensor: Any,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Keep on rewriting devices: checkpoints run parts of the program again in backward."""
        depth, self._depth = self._depth, 0
        try:
            with self:
                torch.autograd.backward(tensor, gradient, retain_graph, create_graph, inputs=inputs)
        finally:
            self._depth = depth

    def _call(self, function: Any, args: Any, kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is None and function in self._factories:
            device = default_device.CURRENT_DEVICE
        if device is None or not _is_gpu(device):
            return function(*args, **kwargs)
        return self._make_on_gpu(function, args, {**kwargs, "device": _CPU})

    def _make_on_gpu(self, function: Any, args: Any, kwargs: Any) -> Any:
        recorder = self._recorder
        recorder.storages.use_gpu()
        before, recorder.making_on_gpu = recorder.making_on_gpu, True
        try:
            made = function(*args, **kwargs)
        finally:
            recorder.making_on_gpu = before
        # from Python data, such as torch.tensor([1, 2], device="cuda"): no operator made it
        return self._to_gpu(made) if isinstance(made, torch.Tensor) else made

    def _is_on_gpu(self, tensor: Any) -> bool:
        storages = self._recorder.storages
        return storages.on_gpu and storages.number(tensor) is not None

    def _to_gpu(self, tensor: Any) -> Any:
        """Note that a tensor is on the GPU, with data from the host unless it was there."""
        storages = self._recorder.storages
        storages.use_gpu()
        if self._recorder.active:
            storages.add(tensor, "input", "input", host=True)
        return tensor

    def _to_host(self, tensor: Any) -> Any:
        """Return a copy on the host of a tensor on the GPU."""
        if not self._is_on_gpu(tensor):
            return tensor
        self._recorder.going_to_host = True
        try:
            return tensor.clone()
        finally:
            self._recorder.going_to_host = False

    def _to(self, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        device, dtype, *_ = (
            torch._C._nn._parse_to(
                *(a.dtype if isinstance(a, torch.Tensor) else a for a in args[:1]),
                **{k: v for k, v in kwargs.items() if k in ("device", "dtype")},
            )
            if args or kwargs
            else (None, None)
        )
        if args and isinstance(args[0], torch.Tensor):
            device, dtype = self.device_of(args[0]), args[0].dtype
        elif len(args) > 1 and isinstance(args[1], torch.dtype):
            dtype = args[1]
        if device is not None and device.type != "cuda":
            tensor = self._to_host(tensor)
        copied = kwargs.get("copy", False)
        if (dtype is not None and dtype != tensor.dtype) or copied:
            tensor = tensor.to(dtype or tensor.dtype, copy=copied)
        return self._to_gpu(tensor) if device is not None and device.type == "cuda" else tensor


def _dropout(original: Any) -> Callable[..., Any]:
    """A GPU has one kernel for dropout; the CPU would use two and a larger mask."""

    def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if not training or p == 0 or inplace:
            return original(x, p, training, inplace)
        return torch.native_dropout(x, p, True)[0]

    return dropout


def _attention(original: Any, counts: Counter[str]) -> Callable[..., Any]:
    """A GPU drops out within flash attention; the CPU would make the whole matrix."""

    def attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **others: Any,
    ) -> Any:
        counts["attention dropout"] += dropout_p > 0
        return original(query, key, value, attn_mask, 0.0, is_causal, **others)

    return attention


def _is_gpu(device: Any) -> bool:
    if isinstance(device, (str, torch.device)):
        return str(device).startswith("cuda")
    return isinstance(device, int) and not isinstance(device, bool)


@contextmanager
def pretend_gpu(recorder: OperatorRecorder) -> Iterator[None]:
    """Pretend that there is a GPU."""
    counts = recorder.counts
    with ExitStack() as stack:
        for name, stub in _cuda(recorder).items():
            if hasattr(torch.cuda, name):
                stack.enter_context(mock.patch.object(torch.cuda, name, stub))
        patch = mock.patch.object
        stack.enter_context(patch(torch, "compile", _compile(counts)))
        stack.enter_context(patch(torch.nn.Module, "_apply", _apply))
        stack.enter_context(patch(torch.amp.autocast_mode.autocast, "__init__", _autocast()))
        stack.enter_context(patch(torch, "Generator", _Generator))
        loader = torch.utils.data.DataLoader
        stack.enter_context(patch(loader, "__init__", _without_workers(loader.__init__, counts)))
        stack.enter_context(patch(loader, "__iter__", _with_data(loader.__iter__)))
        attention = _FUNCTIONAL.scaled_dot_product_attention
        for name, made in (
            ("dropout", _dropout(_FUNCTIONAL.dropout)),
            ("scaled_dot_product_attention", _attention(attention, counts)),
        ):
            stack.enter_context(patch(_FUNCTIONAL, name, made))
        stack.enter_context(patch(clip_grad, "_has_foreach_support", lambda *given: True))
        supported: list[Any] = optimizer._foreach_supported_types
        supported.append(FakeTensor)
        stack.callback(supported.remove, FakeTensor)
        redirect = Redirect(recorder)
        stack.enter_context(patch(FakeTensor, "device", _device(redirect)))
        stack.enter_context(redirect)
        yield


def _device(redirect: Redirect) -> Any:
    """The property ``device`` of tensors without data, which is not a function of PyTorch."""

    true = FakeTensor.device.fget  # type: ignore[attr-defined]

    def device(tensor: Any) -> Any:
        return true(tensor) if redirect.is_honest else redirect.device_of(tensor)

    return property(device)


class _Nothing:
    """A stream, an event or a context: every method does nothing."""

    def __init__(self, *args: Any, **kwargs: Any):
        self.cuda_stream = 0
        self.device = _GPU

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *error: object) -> None: ...

    def elapsed_time(self, other: Any) -> float:
        return 0.0

    def query(self) -> bool:
        return True


class _Generator(torch._C.Generator):
    def __new__(cls, device: Any = "cpu") -> Any:
        return super().__new__(cls)  # of the CPU


def _cuda(recorder: OperatorRecorder) -> dict[str, Any]:
    """Return what replaces the functions of ``torch.cuda``."""
    storages = recorder.storages
    properties = SimpleNamespace(
        name="tidegate", total_memory=_MEMORY, multi_processor_count=108, major=8, minor=0
    )

    def nothing(*args: Any, **kwargs: Any) -> None: ...

    def value(given: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: given

    silent = (
        "synchronize empty_cache set_device manual_seed manual_seed_all seed_all init _lazy_init"
    )
    silent += " reset_peak_memory_stats reset_max_memory_allocated ipc_collect set_rng_state"
    silent += " set_rng_state_all set_stream set_per_process_memory_fraction"
    return {
        **dict.fromkeys(silent.split(), nothing),
        **dict.fromkeys(("Stream", "Event", "stream", "device", "graph", "CUDAGraph"), _Nothing),
        "is_available": value(True),
        "is_initialized": value(True),
        "is_bf16_supported": value(True),
        "is_current_stream_capturing": value(False),
        "device_count": value(1),
        "current_device": value(0),
        "current_stream": _Nothing,
        "default_stream": _Nothing,
        "get_device_name": value("tidegate"),
        "get_device_capability": value((8, 0)),
        "get_device_properties": value(properties),
        "get_rng_state": value(_NO_STATE),
        "get_rng_state_all": value([]),
        "memory_allocated": lambda *a, **k: storages.live,
        "memory_reserved": lambda *a, **k: storages.live,
        "max_memory_allocated": lambda *a, **k: storages.peak,
        "max_memory_reserved": lambda *a, **k: storages.peak,
        "mem_get_info": lambda *a, **k: (_MEMORY - storages.live, _MEMORY),
    }


def _compile(counts: Counter[str]) -> Callable[..., Any]:
    """Leave models as they are: fusing their operators would be guessing."""

    def compile(model: Any = None, **options: Any) -> Any:
        counts["compile"] += 1
        return (lambda found: found) if model is None else model

    return compile


def _apply(self: Any, function: Any, recurse: bool = True) -> Any:
    """Module._apply without setting ``.data``, which tensors without data refuse.

    A tensor that several modules share stays shared.
    """
    made: dict[int, Any] = {}
    for module in self.modules() if recurse else [self]:
        for key, parameter in module._parameters.items():
            if parameter is not None:
                if id(parameter) not in made:
                    with torch.no_grad():
                        found = function(parameter)
                    if found is not parameter:
                        found = torch.nn.Parameter(found, parameter.requires_grad)
                    made[id(parameter)] = found
                module._parameters[key] = made[id(parameter)]
        for key, buffer in module._buffers.items():
            if buffer is not None:
                if id(buffer) not in made:
                    made[id(buffer)] = function(buffer)
                module._buffers[key] = made[id(buffer)]
    return self


def _autocast() -> Callable[..., None]:
    """Autocast of the CPU in place of the GPU's: the tensors are the CPU's."""
    original = torch.amp.autocast_mode.autocast.__init__

    def init(
        self: Any, device_type: str, dtype: Any = None, enabled: bool = True, **others: Any
    ) -> None:
        if device_type == "cuda":
            device_type, dtype = "cpu", dtype or torch.float16
        original(self, device_type, dtype, enabled, **others)

    return init


def _without_workers(original: Any, counts: Counter[str]) -> Callable[..., None]:
    """Data loaders without worker processes, which would not be recorded."""

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("num_workers"):
            counts["workers"] += 1
            kwargs = {**kwargs, "num_workers": 0, "prefetch_factor": None}
            kwargs["persistent_workers"] = False
        original(self, *args, **{**kwargs, "pin_memory": False})

    return init


def _with_data(original: Any) -> Callable[..., Any]:
    """Data loaders whose own tensors have data: they draw the order of samples from them."""

    def iterate(self: Any) -> Iterator[Any]:
        end = object()
        with _disable_current_modes():
            batches = original(self)
        while True:
            with _disable_current_modes():
                batch = next(batches, end)
            if batch is end:
                return
            yield batch

    return iterate


def refuse_processes() -> Any:
    """Return a context in which starting a process of Python raises TidegateError."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise TidegateError(
            "the program starts another process (fork or multiprocessing), which cannot be "
            "recorded; run its work in one process, such as with num_workers=0"
        )

    stack = ExitStack()
    stack.enter_context(mock.patch("os.fork", refuse))
    stack.enter_context(mock.patch("multiprocessing.process.BaseProcess.start", refuse))
    return stack
