"""Libraries over arrays of an arena: nothing is copied, and results equal those of plain memory."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit, prange

from tidegate.live import Arena

pytestmark = pytest.mark.live

ROWS, COLUMNS = 1 << 17, 8  # a column is 1 MiB; the table is twice near memory
Use = Callable[[Any, Any], Any]  # of a module and a matrix, column by column


@njit(parallel=True)
def _sum_of_squares(a: Any) -> float:
    found = 0.0
    for i in prange(a.shape[0]):
        for j in range(a.shape[1]):
            found += a[i, j] * a[i, j]
    return found


def arrow(pa: Any, m: Any) -> Any:
    import pyarrow.compute as pc

    columns = [pa.Array.from_buffers(pa.float64(), ROWS, [None, pa.py_buffer(c)]) for c in m.T]
    assert [c.buffers()[1].address for c in columns] == [c.ctypes.data for c in m.T]
    table = pa.table({f"c{i}": column for i, column in enumerate(columns)})
    kept = table.filter(pc.greater(table["c0"], 0.5))
    return kept.num_rows, [pc.sum(kept[f"c{i}"]).as_py() for i in range(COLUMNS)]


def parquet(pq: Any, m: Any) -> Any:
    import io

    import pyarrow as pa

    file = io.BytesIO()
    pq.write_table(pa.table({"c": pa.array(m.T[0])}), file)
    return np.asarray(pq.read_table(file)["c"]).tolist()[::997]


def pandas(pd: Any, m: Any) -> Any:
    frame = pd.DataFrame(m, copy=False)
    assert np.shares_memory(frame.to_numpy(), m)
    return frame.groupby((frame[0] * 10).astype(int)).sum().to_numpy().tolist()


def polars(pl: Any, m: Any) -> Any:
    frame = pl.DataFrame({f"c{i}": pl.Series(column) for i, column in enumerate(m.T)})
    found = frame.filter(pl.col("c0") > 0.5).select(pl.all().sum(), n=pl.len())
    return found.row(0)


def duckdb(db: Any, m: Any) -> Any:
    import pyarrow as pa

    table = pa.table({"a": pa.array(m.T[0]), "b": pa.array(m.T[1])})
    with db.connect() as connection:
        connection.register("t", table)
        asked = "select round(a * 10) as k, count(*), max(b) from t group by k order by k"
        return connection.sql(asked).fetchall()


def sklearn(module: Any, m: Any) -> Any:
    model = module.Ridge(solver="cholesky").fit(m[:, 1:], m[:, 0])
    return model.coef_.tolist()


def scipy(module: Any, m: Any) -> Any:
    return module.zscore(m[:, 0])[::997].tolist(), float(module.describe(m[:, 1]).variance)


def torch(module: Any, m: Any) -> Any:
    tensor = module.from_numpy(m.T).requires_grad_()
    assert tensor.data_ptr() == m.ctypes.data
    (tensor * tensor).sum().backward()
    return tensor.grad[:, ::997].tolist()


def numba(module: Any, m: Any) -> Any:
    return round(_sum_of_squares(m), 3)


USES: dict[str, Use] = {
    "pyarrow": arrow,
    "pyarrow.parquet": parquet,
    "pandas": pandas,
    "polars": polars,
    "duckdb": duckdb,
    "sklearn.linear_model": sklearn,
    "scipy.stats": scipy,
    "torch": torch,
    "numba": numba,
}


@pytest.fixture(scope="module")
def tables() -> Iterator[tuple[Any, Any]]:
    """The same matrix in an arena, where half of it fits, and in plain memory."""
    plain = np.asfortranarray(np.random.default_rng(1).random((ROWS, COLUMNS)))
    with Arena("4MiB", geometry="64KiB/64KiB", span="1GiB") as arena:  # rows cross all columns
        live = arena.empty(plain.size).reshape(plain.shape, order="F")
        live[:] = plain
        yield live, plain


OURS = ("numpy", "polars", "numba")  # what the package itself needs; the others are extras


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in OURS else pytest.mark.extra) for n in USES]
)
def test_results_equal_those_of_plain_memory(name: str, tables: tuple[Any, Any]) -> None:
    for needed in (name, "pyarrow") if name == "duckdb" else (name,):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    live, plain = tables
    module = importlib.import_module(name)
    assert USES[name](module, live) == USES[name](module, plain)
