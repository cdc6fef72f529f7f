"""Arrays of an arena: made with values, and from .npy files."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate import Arena, TidegateError

VALUES = np.arange(90_000, dtype="f8").reshape(300, 300)
MADE = {
    "plain": VALUES,
    "columns": np.asfortranarray(VALUES),
    "big end": VALUES.astype(">i4"),
    "records": np.array([(1, 2.5)] * 5, dtype=[("a", "i4"), ("é", "f8")]),
    "one number": np.array(3.5),
    "empty": np.empty((0, 3)),
}


@pytest.fixture(scope="module")
def arena():
    with Arena(near="8MiB") as opened:
        yield opened


def test_arrays_with_values(arena):
    assert (arena.ones((3, 4)) == 1).all()
    assert arena.ones(3, "i2").dtype == np.int16
    assert (arena.full((2, 2), 7) == 7).all()
    assert arena.full(2, 7).dtype == np.full(2, 7).dtype
    assert (arena.full(3, [1, 2, 3], "f4") == [1, 2, 3]).all()
    for given in ([[1, 2], [3, 4]], VALUES, VALUES[::2, ::-1], 5, [], "text", [True]):
        made = arena.array(given)
        assert made.dtype == np.array(given).dtype
        assert (made == np.array(given)).all()
    assert arena.array([1, 2], "f4", name="mine").dtype == np.float32
    with pytest.raises(TidegateError, match="not of Python objects"):
        arena.array([{}])


def test_a_copy_is_a_copy(arena):
    given = np.ones(4)
    arena.array(given)[0] = 2
    assert given[0] == 1


@pytest.mark.parametrize("name", MADE)
def test_npy_files_have_their_type_and_shape(arena, tmp_path, name):
    np.save(tmp_path / "x.npy", MADE[name])
    found = arena.open(tmp_path / "x.npy")
    assert (found.dtype, found.shape) == (MADE[name].dtype, MADE[name].shape)
    assert (found == MADE[name]).all()
    assert found.flags.f_contiguous == MADE[name].flags.f_contiguous
    again = arena.open(tmp_path / "x.npy", MADE[name].dtype, MADE[name].shape)
    assert (again == MADE[name]).all()


def test_changes_of_an_npy_file_are_written_back(tmp_path):
    np.save(tmp_path / "x.npy", VALUES)
    with Arena(near="8MiB") as arena:
        array = arena.open(tmp_path / "x.npy", mode="r+")
        array[3, 4] = -1
    expected = VALUES.copy()
    expected[3, 4] = -1
    assert (np.load(tmp_path / "x.npy") == expected).all()


def test_files_that_cannot_be_opened(arena, tmp_path):
    np.save(tmp_path / "x.npy", VALUES)
    whole = (tmp_path / "x.npy").read_bytes()
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    for name, data in (("cut.npy", whole[:5000]), ("head.npy", whole[:40]), ("raw.bin", b"1" * 80)):
        (tmp_path / name).write_bytes(data)
    (tmp_path / "version.npy").write_bytes(whole[:6] + b"\x09" + whole[7:])
    for name, given, said in (
        ("x.npy", ("f4",), "leave dtype and shape out"),
        ("x.npy", ("f8", (5,)), "leave dtype and shape out"),
        ("objects.npy", (), "holds Python objects"),
        ("cut.npy", (), "must have 720000 bytes of data, got 4872"),
        ("head.npy", (), "is not a whole .npy file"),
        ("version.npy", (), "is not a whole .npy file"),
        ("raw.bin", (), "dtype must be given"),
        ("none.npy", (), "cannot be opened: No such file"),
    ):
        with pytest.raises(TidegateError) as error:
            arena.open(tmp_path / name, *given)
        assert said in str(error.value)


def test_an_arena_shows_itself():
    with Arena(near="8MiB", eviction="fifo") as arena:
        kept = arena.ones(1000, "u1", name="<b>")
        arena.ones(1000)  # is gone at once
        assert repr(arena) == "<Arena: 1 array of 1000 B in 8.00 MiB, fifo + stream + um>"
        html = arena._repr_html_()
        assert "&lt;b&gt;" in html
        assert "<b><b>" not in html
        assert html.count("<table>") == 2
        del kept
    assert repr(arena).endswith(", closed>")
    assert "faults" in arena._repr_html_()


HEAD = "{'descr': '<f8', 'fortran_order': False, 'shape': %s}"
HOSTILE = {
    "a negative length": HEAD % "(-1,)",
    "two negative lengths": HEAD % "(-2, -4)",
    "a hundred dimensions": HEAD % str((1,) * 100),
    "true as a length": HEAD % "(True,)",
    "a float as a length": HEAD % "(1.0,)",
    "a length beyond 64 bits": HEAD % f"({1 << 70}, 0)",
    "lengths of no array": HEAD % f"({1 << 62}, {1 << 62}, 0)",
    "a long number": HEAD % ("9" * 5000),
    "open brackets": "(" * 5000,
    "nested signs": "-" * 8000 + "1",
    "nested lists": "[" * 150 + "]" * 150,
}


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
def test_hostile_npy_headers_are_one_clear_line(arena, tmp_path, said):
    path, head = tmp_path / "x.npy", said.encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(4096))
    with pytest.raises(TidegateError, match="not a whole") as raised:
        arena.open(path)
    assert str(raised.value).isprintable()
