"""Files of weights, written here by the formats' specifications, read back in little memory."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegate.errors import TidegateError
from tidegate.live import load_gguf, load_safetensors
from tidegate.live.weights.gguf import read_gguf
from tidegate.live.weights.safetensors import read_safetensors

pytestmark = pytest.mark.live

SMALL = {"near": "256KiB", "geometry": "16KiB/64KiB"}
RANDOM = np.random.default_rng(3)
TENSORS = {
    "embedding": RANDOM.standard_normal((512, 100)).astype("f4"),
    "scale": np.arange(7, dtype="f2"),
    "bits": RANDOM.integers(0, 1 << 16, (3, 5, 11)).astype("u2"),
    "deep": RANDOM.integers(-100, 100, (40, 4096)).astype("i1"),
    "empty": np.zeros((0, 3), "f8"),
}
KINDS = {"f4": "F32", "f2": "F16", "u2": "BF16", "i1": "I8", "f8": "F64"}


def kind(array: np.ndarray[Any, Any]) -> str:
    return KINDS[array.dtype.str[1:]]


def safetensors(tensors: dict[str, Any]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"made": "here"}}
    data = b""
    for name, a in tensors.items():
        offsets = [len(data), len(data) + a.nbytes]
        header[name] = {"dtype": kind(a), "shape": list(a.shape), "data_offsets": offsets}
        data += a.tobytes()
    said = json.dumps(header).encode()
    said += b" " * (-len(said) % 8)
    return struct.pack("<Q", len(said)) + said + data


def text(of: str) -> bytes:
    return struct.pack("<Q", len(of.encode())) + of.encode()


GGUF_TYPES = {"f4": 0, "f2": 1, "i1": 24, "u2": 30, "f8": 28}


def gguf(tensors: dict[str, Any], quantised: bytes = b"") -> bytes:
    """A file with metadata of several types; ``quantised``: two rows of one Q4_0 block each."""
    entries = [
        text("general.alignment") + struct.pack("<II", 4, 64),
        text("general.name") + struct.pack("<I", 8) + text("small"),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        text("rate") + struct.pack("<If", 6, 0.5),
    ]
    table, data = [], b""
    for name, a in tensors.items():
        data += b"\0" * (-len(data) % 64)
        dims = struct.pack(f"<I{a.ndim}Q", a.ndim, *a.shape[::-1])
        table.append(text(name) + dims + struct.pack("<IQ", GGUF_TYPES[a.dtype.str[1:]], len(data)))
        data += a.tobytes()
    if quantised:
        data += b"\0" * (-len(data) % 64)
        table.append(text("q") + struct.pack("<IQQIQ", 2, 32, 2, 2, len(data)))
        data += quantised
    head = b"GGUF" + struct.pack("<IQQ", 3, len(table), len(entries)) + b"".join(entries + table)
    return head + b"\0" * (-len(head) % 64) + data


@pytest.mark.parametrize(("load", "write"), [(load_safetensors, safetensors), (load_gguf, gguf)])
def test_tensors_are_what_was_written(load: Any, write: Any, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(write(TENSORS))
    with load(path, **SMALL) as weights:
        assert list(weights) == list(TENSORS)
        for _ in range(2):  # they do not fit: the second time they come from the file again
            for name, right in TENSORS.items():
                found = weights[name]
                assert (found.dtype, found.shape) == (right.dtype, right.shape)
                assert np.array_equal(found, right)
                assert not found.flags.writeable or not found.size
        assert weights.kind("bits") == "BF16"
        assert weights.arena.stats()["evictions"] > 0
        assert weights.arena.stats()["bytes_out"] == 0
        assert "5 tensors" in repr(weights)
        metadata = weights.metadata
    if load is load_gguf:
        assert (metadata["general.name"], metadata["tokens"]) == ("small", ["a", "b"])
    else:
        assert metadata == {"made": "here"}


def test_a_name_that_is_no_tensors(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(safetensors(TENSORS))
    with load_safetensors(path, **SMALL) as weights:
        assert "embeding" not in weights
        assert weights.get("embeding") is None
        for ask in (weights.__getitem__, weights.kind):
            with pytest.raises(KeyError, match="no tensor 'embeding'; did you mean 'embedding'"):
                ask("embeding")
    with pytest.raises(KeyError, match="closed"):
        weights["embedding"]


def test_quantised_rows_are_bytes(tmp_path: Path) -> None:
    blocks = bytes(range(36))
    path = tmp_path / "q.gguf"
    path.write_bytes(gguf({}, blocks))
    with load_gguf(path, **SMALL) as weights:
        assert weights["q"].shape == (2, 18)
        assert weights["q"].tobytes() == blocks
        assert weights.kind("q") == "Q4_0"


def test_several_files_and_their_index(tmp_path: Path) -> None:
    parts = {"a.safetensors": ["embedding"], "b.safetensors": ["scale", "deep"]}
    for name, names in parts.items():
        (tmp_path / name).write_bytes(safetensors({n: TENSORS[n] for n in names}))
    index = tmp_path / "model.safetensors.index.json"
    where = {n: file for file, names in parts.items() for n in names}
    index.write_text(json.dumps({"weight_map": where}))
    with load_safetensors(index, **SMALL) as weights:
        assert set(weights) == {"embedding", "scale", "deep"}
        assert np.array_equal(weights["deep"], TENSORS["deep"])
    twice = tmp_path / "c.safetensors"
    twice.write_bytes(safetensors({"scale": TENSORS["scale"]}))
    with pytest.raises(TidegateError, match="two files have a tensor 'scale'"):
        load_safetensors([tmp_path / "b.safetensors", twice], **SMALL)


@pytest.mark.extra
def test_pytorch_shares_the_memory(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; `make torch` does it")
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors(TENSORS))
    with load_safetensors(path, **SMALL) as weights:
        found = weights.tensor("embedding")
        assert found.data_ptr() == weights["embedding"].ctypes.data
        assert torch.equal(found, torch.from_numpy(TENSORS["embedding"]))
        bits = weights.tensor("bits")
        assert bits.dtype == torch.bfloat16
        assert torch.equal(bits.view(torch.int16), torch.from_numpy(TENSORS["bits"].view("i2")))
        del found, bits


@pytest.mark.parametrize(("read", "write"), [(read_safetensors, safetensors), (read_gguf, gguf)])
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_files_are_one_line(read: Any, write: Any, tmp_path: Path, data: Any) -> None:
    """Cut anywhere, or with some bytes replaced: either what was written, or one line."""
    whole = write({n: TENSORS[n] for n in ("scale", "bits")})
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    damaged = bytearray(cut)
    for _ in range(data.draw(st.integers(0, 4)) if damaged else 0):
        damaged[data.draw(st.integers(0, min(len(damaged), 500) - 1))] = data.draw(
            st.integers(0, 255)
        )
    path = tmp_path / "damaged"
    path.write_bytes(damaged)
    said, places = "", []
    try:
        places, _ = read(path)
    except TidegateError as error:
        said = str(error)
    assert "\n" not in said
    assert all(p.offset + p.bytes <= len(damaged) for p in places)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a whole safetensors file"),
        (struct.pack("<Q", 1 << 62), "not a whole safetensors file"),
        (struct.pack("<Q", 8) + b"not json", "damaged safetensors header"),
        (safetensors(TENSORS)[:-1000], "cut short or damaged: tensor 'deep'"),
    ],
)
def test_words_for_damaged_safetensors(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(TidegateError, match=said):
        load_safetensors(path, **SMALL)


def header(*tensors: str, more: str = "") -> bytes:
    """A file whose header has these tensors as they are written here, and 64 bytes of data."""
    entries = [
        *(f'"t{i}":{said}' for i, said in enumerate(tensors)),
        *filter(None, more.split("|")),
    ]
    said = "{" + ",".join(entries) + "}"
    return struct.pack("<Q", len(said)) + said.encode() + bytes(64)


def tensor(shape: str = "[8]", offsets: str = "[0,8]", kind: str = '"U8"') -> str:
    return f'{{"dtype":{kind},"shape":{shape},"data_offsets":{offsets}}}'


HOSTILE = {
    "negative offsets": tensor(offsets="[-8,0]"),
    "the header as data": tensor(offsets="[-40,-32]"),
    "float offsets": tensor(offsets="[0.0,8.0]"),
    "float in a shape": tensor(shape="[8.0]"),
    "a text in a shape": tensor(shape='["8"]'),
    "true in a shape": tensor(shape="[true]", offsets="[0,1]"),
    "a text as a shape": tensor(shape='"8"'),
    "infinite offsets": tensor(offsets="[0,Infinity]"),
    "offsets of no number": tensor(offsets="[NaN,NaN]"),
    "large offsets": tensor(offsets="[1e308,1e308]"),
    "three offsets": tensor(offsets="[0,8,8]"),
    "negative lengths": tensor(shape="[-2,-4]"),
    "a hundred dimensions": tensor(shape=str([1] * 100), offsets="[0,1]"),
    "lengths of no array": tensor(shape=f"[0,{1 << 62},{1 << 62}]", offsets="[0,0]"),
    "lengths beyond 64 bits": tensor(shape=f"[0,{1 << 70}]", offsets="[0,0]"),
    "long numbers": tensor(offsets="[0," + "9" * 5000 + "]"),
    "a list as a type": tensor(kind='["U8"]'),
    "beyond the end": tensor(shape="[65]", offsets="[0,65]"),
    "nested": "[" * 200_000 + "]" * 200_000,
    "nested tables": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "a list": "[]",
    "nothing": "null",
    "a type of no name": tensor(kind='"\\u001b]0;taken\\u0007\\n"'),
}


def refused(path: Path, load: Any) -> None:
    """Expect one clear line."""
    with pytest.raises(TidegateError, match="damaged") as raised:
        load(path, **SMALL)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
def test_hostile_safetensors_are_one_clear_line(tmp_path: Path, said: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(header(said, more='"good":' + tensor()))
    refused(path, load_safetensors)


@pytest.mark.parametrize(
    "more", ['"a":1|"a":1', '"__metadata__":[]', '"__metadata__":1', '"__metadata__":"x"']
)
def test_hostile_metadata_is_one_clear_line(tmp_path: Path, more: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(header(tensor(), more=more))
    refused(path, load_safetensors)


def test_a_hostile_name_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    name = '"' + "\\u001b[2J\\n" * 1000 + '":'
    path.write_bytes(header(more=name + tensor(shape="[1000]", offsets="[0,1000]")))
    refused(path, load_safetensors)


@pytest.mark.parametrize("shape", [(1,) * 9, (0, 1 << 62, 1 << 62), (1 << 63, 2)])
@pytest.mark.parametrize("offset", [0, 1 << 63])
def test_hostile_gguf_is_one_clear_line(
    tmp_path: Path, shape: tuple[int, ...], offset: int
) -> None:
    dims = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    table = text("\x1b[2J\n" * 100) + dims + struct.pack("<IQ", 24, offset)
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + table + bytes(1000))
    refused(path, load_gguf)


def test_what_is_no_file(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "not a regular file"), ([], "at least one file")):
        with pytest.raises(TidegateError, match=said):
            load_safetensors(path, **SMALL)
    with pytest.raises(TidegateError, match="cannot be opened"):
        load_gguf(tmp_path / "none.gguf", **SMALL)
