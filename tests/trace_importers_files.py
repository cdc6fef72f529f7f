"""Files of other tools, made from a known list of accesses, by the formats' specifications."""

from __future__ import annotations

import json
import lzma
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

BASE = 0x7F0000000000


class Access(NamedTuple):
    """One access of a block."""

    block: int
    address: int
    bytes: int
    write: bool


def lackey(path: Path, accesses: Sequence[Access]) -> Path:
    lines = ["==7== Lackey, an example Valgrind tool", "I  04001000,3"]
    lines += [f" {'S' if a.write else 'L'} {a.address:x},{a.bytes}" for a in accesses]
    path.write_text("\n".join(lines) + "\n")
    return path


def nvbit(path: Path, accesses: Sequence[Access]) -> Path:
    lines = [
        "program output",
        "MEMTRACE: CTX 0x55 - LAUNCH - Kernel pc 0x7f - Kernel name add(float*, int) - "
        "grid launch id 0 - grid size 2,1,1 - block size 32,1,1 - nregs 8 - shmem 0",
    ]
    for a in accesses:
        lanes = [f"0x{a.address:016x}"] + ["0x0000000000000000"] * 31
        opcode = f"{'STG' if a.write else 'LDG'}.E.{8 * a.bytes}"
        lines.append(
            f"MEMTRACE: CTX 0x55 - grid_launch_id 0 - CTA {a.block},0,0 - warp 0 - {opcode} - "
            + " ".join(lanes)
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def accel_sim(path: Path, accesses: Sequence[Access]) -> Path:
    lines = ["-kernel name = add", "-kernel id = 1", "#traces format = PC mask dest op src mem"]
    for block in sorted({a.block for a in accesses}):
        lines += ["", "#BEGIN_TB", "", f"thread block = {block},0,0", "", "warp = 0"]
        mine = [a for a in accesses if a.block == block]
        lines.append(f"insts = {len(mine) + 1}")
        for a in mine:
            registers = "0 STG.E 2 R1 R2" if a.write else "1 R1 LDG.E 1 R2"
            lines.append(f"0010 00000001 {registers} {a.bytes} 1 {a.address:#x} 4")
        lines += ["0020 ffffffff 0 EXIT 0 0", "", "#END_TB"]
    path.write_bytes(lzma.compress(("\n".join(lines) + "\n").encode()))
    return path


def uvm_tools(path: Path, accesses: Sequence[Access]) -> Path:
    entry = {
        "names": ["type", "fault", "access", "address", "batch"],
        "formats": ["u1", "u1", "u1", "<u8", "<u4"],
        "offsets": [0, 1, 2, 8, 32],
        "itemsize": 64,
    }
    rows = np.zeros(len(accesses) + 1, np.dtype(entry))  # type: ignore[call-overload]
    rows["type"][0] = 2  # a migration, which is left out
    for row, a in zip(rows[1:], accesses, strict=True):
        row["type"], row["fault"], row["address"] = 3, 2, a.address
        row["access"] = 3 if a.write else 1
    path.write_bytes(rows.tobytes())
    return path


def nsight(path: Path, accesses: Sequence[Access], kernels: bool = True) -> Path:
    database = sqlite3.connect(path)
    database.execute(
        "CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INT, end INT, globalPid INT, "
        "deviceId INT, address INT, numberOfPageFaults INT, faultAccessType INT)"
    )
    rows = [
        (10 + i, 11 + i, 1, 0, a.address, 1, 2 if a.write else 1) for i, a in enumerate(accesses)
    ]
    database.executemany(
        "INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?)", rows
    )
    if kernels:
        database.execute("CREATE TABLE StringIds (id INT, value TEXT)")
        database.execute("INSERT INTO StringIds VALUES (1, 'add')")
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT)"
        )
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 1000000, 1)")
    database.commit()
    database.close()
    return path


def oracle_general(path: Path, keys: Sequence[int]) -> Path:
    rows = np.zeros(len(keys), [("time", "<u4"), ("key", "<u8"), ("size", "<u4"), ("next", "<i8")])
    rows["time"], rows["key"], rows["size"] = np.arange(len(keys)), keys, 100
    following: dict[int, int] = {}
    for i in range(len(keys) - 1, -1, -1):
        rows["next"][i] = following.get(keys[i], -1)
        following[keys[i]] = i
    path.write_bytes(rows.tobytes())
    return path


def csv(path: Path, keys: Sequence[int]) -> Path:
    lines = ["time,obj_id,size"] + [f"{i},{k},100" for i, k in enumerate(keys)]
    path.write_text("\n".join(lines) + "\n")
    return path


def moe(path: Path, rows: Sequence[tuple[int, int, list[int]]]) -> Path:
    text = [json.dumps({"token": t, "layer": n, "experts": e}) for t, n, e in rows]
    path.write_text("\n".join(text) + "\n")
    return path


def kv_cache(path: Path, requests: Sequence[tuple[list[int], int]]) -> Path:
    text = [
        json.dumps({"timestamp": i, "input_length": 9, "output_length": o, "hash_ids": ids})
        for i, (ids, o) in enumerate(requests)
    ]
    path.write_text("\n".join(text) + "\n")
    return path


ADDRESSES: dict[str, Callable[[Path, Sequence[Access]], Path]] = {
    "lackey": lackey,
    "nvbit": nvbit,
    "accel-sim": accel_sim,
    "uvm-tools": uvm_tools,
    "nsight": nsight,
}
KEYS: dict[str, Callable[[Path, Sequence[int]], Path]] = {
    "oracle-general": oracle_general,
    "csv": csv,
}
