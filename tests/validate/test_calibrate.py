"""tidegate calibrate: the probe compiles, known constants come back, mistakes are said clearly."""

from __future__ import annotations

import dataclasses
import math
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tidegate import units
from tidegate.cli import invoke
from tidegate.errors import TidegateError
from tidegate.machine import Machine, load_machine
from tidegate.validate.calibrate import NEEDS, Calibration, _find_order, calibrate, simulate
from tidegate.validate.card import preset_of
from tidegate.validate.fit import constant, fit, with_constants
from tidegate.validate.machine_text import machine_text
from tidegate.validate.play import play_all
from tidegate.validate.points import Quantity, Role, load_points
from tidegate.validate.probe import COLUMNS, COPIES, SOURCE, Measured, Program, read_probe

NEAR = 128 * units.MiB  # a sixteenth of the probe's
NOISE = 0.03
REPEATS = 5
CALL = 1800.0  # ns that a copy costs a program more than the driver
CARD = """\
# tidegate probe=1
# date=2026-01-02
# card=NVIDIA GeForce RTX 5070 Ti
# driver=NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.10.01  Release Build
# host=Some CPU
# cuda=13000
# compute=12.0
# sms=70
# threads_per_sm=1536
# bytes=17094934528
# bus_bits=256
# memory_khz=14001000
# clock_khz=2452000
"""
CHANGED = {
    "link.inward": 26.0,
    "link.outward": 24.0,
    "link.run_overhead": 400.0,
    "near.launch_overhead": 6000.0,
    "driver.batch_overhead": 27_000.0,
    "driver.region_overhead": 7000.0,
    "driver.copy_overhead": 2000.0,
    "driver.first_overhead": 9000.0,
    "driver.unmap_per_kib": 20.0,
    "driver.evict_overhead": 9000.0,
}


def needs_scipy() -> None:
    pytest.importorskip("scipy", reason="fitting needs scipy: make extras")


# A card with known constants, as the probe would print it


def known_card() -> Machine:
    machine = with_constants(load_machine("rtx5070ti-pcie5"), CHANGED)
    return dataclasses.replace(machine, near=dataclasses.replace(machine.near, block_faults=3))


def programs() -> Iterable[tuple[Program, Sequence[int]]]:
    """What probe.cu runs, with the launches that it prints."""
    leaves = [32 * block + leaf for block in range(3) for leaf in (0, 1, 2, 4, 8, 16)]
    order = "+".join(map(str, [*leaves, leaves[-1]]))
    yield Program("page-order", 8 * units.MiB, NEAR, order), range(1, len(leaves) + 2)
    for pages in (1, 8, 512):
        yield Program("sparse", NEAR * 3 // 4, NEAR, str(pages)), (1,)
    for pages in (1, 64):
        yield Program("sparse", NEAR * 3 // 2, NEAR, str(pages)), (1, 2)
    for size in (NEAR * 5 // 4, NEAR * 3 // 2):
        yield Program("sequence", size, NEAR, ""), (1, 2)
    yield Program("triad", NEAR * 3 // 8, NEAR, ""), (1,)
    yield Program("stencil", NEAR // 4, NEAR, "20"), (0,)


def copy_times(machine: Machine) -> Iterable[tuple[str, int, float]]:
    link = machine.link
    for size in (4096 * 4**n for n in range(8)):
        yield "copy-in", size, CALL + link.run_overhead + size / link.inward
        yield "copy-out", size, CALL + size / link.outward
        yield "copy-both", size, CALL + 2 * size / link.both


def rows_of(machine: Machine, noise: float = NOISE) -> list[str]:
    draw = np.random.default_rng(1)
    rows = []

    def measure(kind: str, size: int, near: int, detail: str, launch: int, ns: float) -> None:
        for repeat in range(1, REPEATS + 1):
            time = ns * (1 + noise * draw.standard_normal())
            rows.append(f"{kind},{size},{near},{detail},{launch},{repeat},{time:.0f}")

    for kind, size, ns in copy_times(machine):
        measure(kind, size, 0, "", 0, ns)
    for program, launches in programs():
        asked = [Measured(program, launch, 0.0, 0.0) for launch in launches]
        for one, time in zip(asked, simulate(asked, machine), strict=True):
            ns = time + (machine.near.launch_overhead if one.launch else 0)
            measure(program.kind, program.bytes, NEAR, program.detail, one.launch, ns)
    return rows


def csv_text(rows: Iterable[str], card: str = CARD) -> str:
    return card + "\n".join([",".join(COLUMNS), *rows]) + "\n"


@pytest.fixture(scope="module")
def rows() -> list[str]:
    return rows_of(known_card())


@pytest.fixture(scope="module")
def found(rows: list[str], tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    needs_scipy()
    path = tmp_path_factory.mktemp("probe") / "probe.csv"
    path.write_text(csv_text(rows))
    return calibrate(read_probe(path))


Probed = Callable[..., Path]


@pytest.fixture
def probed(tmp_path: Path) -> Probed:
    """A file of the probe's output."""

    def write(rows: Iterable[str], card: str = CARD) -> Path:
        path = tmp_path / "probe.csv"
        path.write_text(csv_text(rows, card))
        return path

    return write


COPY_ROWS = [
    f"{kind},{size},0,,0,1,{2000 + size / 25}" for kind in COPIES for size in (4096, 2**26)
]


# The round trip


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGED)
def test_known_constants_come_back(found: Calibration, name: str) -> None:
    """Within 5 %, or twice the error that the fit gives itself."""
    (one,) = (one for one in found.constants if one.name == name)
    assert abs(math.log(one.value / CHANGED[name])) < max(0.05, 2 * one.error)


@pytest.mark.slow
def test_a_blocks_faults_and_their_order_come_back(found: Calibration) -> None:
    assert found.machine.near.block_faults == 3
    assert found.machine.near.utlb_faults is None


@pytest.mark.parametrize("order", [0, 4])
@pytest.mark.parametrize("preset", ["rtx5070ti-pcie5", "rtx5090-pcie5"])
def test_the_order_of_service_is_the_one_that_is_not_tenfold_off(preset: str, order: int) -> None:
    def play(machine: Machine) -> list[float]:
        return [100.0, 100.0 if (machine.near.utlb_faults or 0) == order else 3000.0]

    found, said = _find_order(load_machine(preset), play, [100.0, 100.0], [0.03, 0.03])
    assert (found.near.utlb_faults or 0) == said.value == order


@pytest.mark.slow
def test_every_fitted_constant_is_said_to_be(found: Calibration) -> None:
    assert sorted(one.name for one in found.constants) == sorted(NEEDS)


@pytest.mark.slow
def test_what_was_held_out_agrees(found: Calibration) -> None:
    assert [one.program.kind for one in found.held_out] == ["triad", "stencil"]
    assert all(0.9 < one.ratio < 1.1 for one in found.held_out)


@pytest.mark.slow
def test_the_file_is_the_machine(found: Calibration, tmp_path: Path) -> None:
    path = tmp_path / "mycard.toml"
    path.write_text(machine_text(found))
    machine = load_machine(path)
    for name in CHANGED:
        assert constant(machine, name) == pytest.approx(constant(found.machine, name), rel=1e-3)
        assert "fitted on" in machine.sources[name]
        assert "±" in machine.sources[name]
    assert machine.near == dataclasses.replace(
        found.machine.near,
        launch_overhead=machine.near.launch_overhead,
        bandwidth=machine.near.bandwidth,
    )
    head = path.read_text().partition("\n\n")[0]
    assert "driver: 595.10.01" in head
    assert "held out: triad" in head


# Points of real cards

DRIVER = ["driver.batch_overhead", "driver.region_overhead"]
SPARSE = [*DRIVER, "driver.copy_overhead"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sets", "preset", "names"), [("AB", "rtx5070ti-pcie5", SPARSE), ("C", "t4-pcie3", DRIVER)]
)
def test_real_points_are_fitted_from_twice_the_constants(
    sets: str, preset: str, names: list[str]
) -> None:
    """What was fitted comes nearer, and so does what was not."""
    needs_scipy()
    points = [p for p in load_points() if p.source.set in sets and p.quantity is Quantity.TIME]
    measured = {p: p.measured for p in points if isinstance(p.measured, float)}
    fitted = [p for p in points if p.role is Role.FITTED]
    held = [p for p in points if p.role is Role.TEST]
    machine = load_machine(preset)
    start = with_constants(machine, {name: 2 * constant(machine, name) for name in names})

    def play(tried: Machine) -> list[float]:
        played = play_all(fitted, tried, cache=False)
        return [float(played[p]) for p in fitted]  # type: ignore[arg-type]

    def off(machine: Machine) -> float:
        played = play_all(held, machine, cache=False)
        return float(np.mean([abs(math.log(played[p] / measured[p])) for p in held]))  # type: ignore[operator]

    found = fit(start, names, play, [measured[p] for p in fitted])
    assert np.mean(np.abs(np.log(found.ratios))) < math.log(1.25)
    assert off(found.machine) < min(off(start), math.log(1.4))


# The probe


def test_the_verb_writes_the_probe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "probe.cu"
    assert invoke(["calibrate", "--emit", str(path)]) == 0
    assert path.read_text() == SOURCE.read_text()
    assert "nvcc -O2" in capsys.readouterr().out


def nvcc() -> str:
    """CUDA's compiler: of a toolkit, or of NVIDIA's wheels."""
    wheels = [Path(place, "nvidia") for place in sys.path]
    of_wheels = [file for folder in wheels for file in folder.glob("*/bin/nvcc")]
    compiler = shutil.which("nvcc") or next(map(str, of_wheels), None)
    if compiler is None:
        pytest.skip("nvcc is not installed")
    if shutil.which("g++") is None:
        pytest.skip("nvcc needs a host compiler, g++")
    return compiler


@pytest.mark.extra
def test_the_probe_compiles(tmp_path: Path) -> None:
    words = [nvcc(), "-O2", "-Werror", "all-warnings", str(SOURCE), "-o", str(tmp_path / "probe")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "probe").is_file()


def test_the_probe_prints_what_is_read() -> None:
    text = SOURCE.read_text()
    assert f'printf("{",".join(COLUMNS)}\\n");' in text
    for kind in ("page-order", "sparse", "sequence", "triad", "stencil", *COPIES):
        assert f'"{kind}"' in text


# Mistakes


@pytest.mark.parametrize(
    ("card", "rows", "said"),
    [
        ("", COPY_ROWS, "must be the output of probe.cu"),
        ("# tidegate probe=7\n# card=X\n", COPY_ROWS, "version 7 of the probe, expected 1"),
        (CARD + "# card=Tesla T4\n", COPY_ROWS, "must be of one card, got"),
        (CARD + "# driver=580.1\n", COPY_ROWS, "must be of one driver, got"),
        (CARD, COPY_ROWS[2:], "has no rows copy-in"),
        (CARD, [*COPY_ROWS, "sparse,12"], "got 'sparse,12'"),
        (CARD, [*COPY_ROWS, "sprase,4096,8192,1,1,1,12"], "line 21: must be kind,bytes"),
        (CARD, [*COPY_ROWS, "triad,4096,8192,,1,1,-3"], "got 'triad,4096,8192,,1,1,-3'"),
        (CARD, [*COPY_ROWS, "triad,4096,8192,,1,1,nan"], "got 'triad,4096,8192,,1,1,nan'"),
    ],
)
def test_what_is_no_probe_is_refused(probed: Probed, card: str, rows: list[str], said: str) -> None:
    with pytest.raises(TidegateError, match=said.replace("(", r"\(")):
        read_probe(probed(rows, card))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "needs what the probe printed"),
        (["--emit", "probe.cu", "-o", "mycard.toml"], "give it alone"),
        (["probe.csv", "-o", "mycard.json"], "its name must end in .toml"),
        (["none.csv", "-o", "mycard.toml"], "none.csv"),
        (["probe.csv", "-o", "mycard.toml", "--like", "t4"], "unknown machine 't4'"),
        (["--emit", "no/such/folder/probe.cu"], "there is no folder"),
    ],
)
def test_mistakes_at_the_command_line(
    probed: Probed,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(probed(COPY_ROWS).parent)
    assert invoke(["calibrate", *words]) == 2
    answer = capsys.readouterr()
    assert said in answer.err
    assert answer.err.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == ["probe.csv"]


def test_measurements_are_not_overwritten(probed: Probed) -> None:
    path = probed(COPY_ROWS).rename(Path(probed([])).with_name("probe.toml"))
    before = path.read_text()
    assert invoke(["calibrate", str(path), "-o", str(path)]) == 2
    assert path.read_text() == before


def test_without_scipy_one_line_says_what_to_install(
    probed: Probed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(TidegateError, match="needs scipy: pip install 'tidegate"):
        calibrate(read_probe(probed(COPY_ROWS)))


# What is said


def test_outliers_are_left_out_and_named(probed: Probed) -> None:
    times = [100_000, 101_000, 99_000, 100_500, 900_000]
    rows = [f"triad,12582912,33554432,,1,{n},{ns}" for n, ns in enumerate(times, 1)]
    probe = read_probe(probed([*COPY_ROWS, *rows]))
    (one,) = probe.of("triad")
    assert one.ns == 100_250
    assert "left out as an outlier: triad, 12.0 MiB, launch 1, repeat 5: 900 us" in probe.notes[0]


def test_unsteady_times_are_named(probed: Probed) -> None:
    rows = [f"triad,12582912,33554432,,1,{n},{n * 1e5}" for n in range(1, 6)]
    assert "unsteady: triad" in read_probe(probed([*COPY_ROWS, *rows])).notes[0]


def test_copies_alone_fit_the_link(probed: Probed) -> None:
    """The rest stays what the preset says, and a note names it."""
    needs_scipy()
    found = calibrate(read_probe(probed(COPY_ROWS)))
    assert found.machine.link.inward == pytest.approx(25, rel=0.01)
    assert found.machine.link.both == pytest.approx(50, rel=0.01)
    assert found.machine.driver == load_machine("rtx5070ti-pcie5").driver
    assert any("missing: page-order, sparse K=1 in memory" in note for note in found.notes)
    kept = next(note for note in found.notes if note.startswith("not fitted"))
    assert "driver.batch_overhead" in kept
    assert "those of rtx5070ti-pcie5" in kept


@pytest.mark.parametrize(
    ("card", "size", "preset"),
    [
        ("NVIDIA GeForce RTX 5070 Ti", "15.9GiB", "rtx5070ti-pcie5"),
        ("NVIDIA GeForce RTX 5070", "11.9GiB", None),
        ("Tesla T4", "14.6GiB", "t4-pcie3"),
        ("NVIDIA A100-SXM4-40GB", "39.4GiB", "a100-40-pcie4"),
        ("NVIDIA A100-SXM4-80GB", "79.3GiB", "a100-80-pcie4"),
        ("NVIDIA GeForce GTX 1080 Ti", "11GiB", None),
    ],
)
def test_a_card_has_its_preset(probed: Probed, card: str, size: str, preset: str | None) -> None:
    head = f"# tidegate probe=1\n# card={card}\n# bytes={units.size(size)}\n"
    assert preset_of(read_probe(probed(COPY_ROWS, head))) == preset


@pytest.mark.parametrize(
    ("card", "like", "said"),
    [
        (CARD, "t4-pcie3", "--like t4-pcie3 is not of NVIDIA GeForce RTX 5070 Ti"),
        (CARD.replace("5070 Ti", "5060"), None, "there is no preset of NVIDIA GeForce RTX 5060"),
        (CARD.replace("595.10", "610.10"), None, "the driver is 610.10.01"),
    ],
)
def test_another_card_or_driver_is_said(
    probed: Probed, card: str, like: str | None, said: str
) -> None:
    needs_scipy()
    notes = calibrate(read_probe(probed(COPY_ROWS, card)), like).notes
    assert notes[0].startswith(said)


def test_constants_of_another_card_are_guesses(probed: Probed, tmp_path: Path) -> None:
    needs_scipy()
    card = CARD.replace("5070 Ti", "5060")
    path = tmp_path / "mycard.toml"
    path.write_text(machine_text(calibrate(read_probe(probed(COPY_ROWS, card)))))
    machine = load_machine(path)
    assert machine.sources["near.sms"] == "H: device properties"
    assert machine.sources["link.remote_share"] == "L: as rtx5070ti-pcie5"
    assert machine.near.flops == pytest.approx(2 * 70 * 128 * 2.452, rel=1e-3)
    assert not machine.rates.fp64
