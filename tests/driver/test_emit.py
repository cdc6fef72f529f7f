"""Folders for the kernel, hooks of gpu_ext, and settings of the stock driver."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tidegate.driver.find import find_policy
from tidegate.driver.folder import make_folder, write_folder
from tidegate.driver.kernel import Loaded, compile_bpf
from tidegate.driver.modprobe import emit_modprobe, settings_of
from tidegate.errors import TidegateError, UnknownName
from tidegate.machine.machine import load_machine

NEAR = 64 << 20
MACHINE = "rtx3090-pcie4"


def folder_of(spec: str, path: Path) -> Path:
    write_folder(make_folder(find_policy(spec)[1], load_machine(MACHINE), NEAR), path / "made")
    return path / "made"


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("spec", ["cp", pytest.param("tournament", marks=pytest.mark.slow)])
def test_a_folder_compiles_and_is_verified_as_it_is(spec: str, tmp_path: Path) -> None:
    made = folder_of(spec, tmp_path)
    names = {"policy.bpf.c", "policy.h", "check.h", "load.c", "Makefile", "README.md"}
    assert {p.name for p in made.iterdir()} == names
    with Loaded(compile_bpf(made / "policy.bpf.c", "CHECK")) as loaded:
        assert loaded.instructions("call") > 100


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("spec", ["steered(cp)", "tree(threshold=25)", "region", "none"])
def test_hooks_compile(spec: str, tmp_path: Path) -> None:
    made = folder_of(spec, tmp_path)
    compile_bpf(made / "policy.bpf.c", "GPU_EXT")
    named = subprocess.run(["nm", made / "policy.bpf.o"], capture_output=True, text=True).stdout
    hook = "activate" if spec.startswith("steered") else "prefetch_node"
    assert f" {hook}\n" in named
    assert "make attach" in (made / "README.md").read_text()


@pytest.mark.usefixtures("kernel")
def test_the_loader_is_c_that_compiles_and_verifies(tmp_path: Path) -> None:
    if shutil.which("cc") is None or not Path("/usr/include/bpf/libbpf.h").exists():
        pytest.skip("no C compiler, or no headers of libbpf: apt-get install libbpf-dev")
    made = folder_of("fifo", tmp_path)
    subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", "load.c", "-o", "load", "-lbpf"], cwd=made, check=True
    )
    compile_bpf(made / "policy.bpf.c", "CHECK")

    def load(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([made / "load", *words], capture_output=True, text=True, cwd=made)

    assert "verified: call, " in load("policy.bpf.o").stdout
    assert load().returncode == 2
    assert load("policy.bpf.o", "attach").returncode == 1  # it has no hooks
    assert load("nothing.o").returncode == 1


def test_the_hook_that_is_missing_is_named(tmp_path: Path) -> None:
    said = make_folder(find_policy("lru")[1], load_machine(MACHINE), NEAR).files["README.md"]
    assert "asks for a victim, tells of faults and evictions, and tells of uses of observed" in said
    assert "make attach" not in said


def test_sizes_are_the_drivers() -> None:
    code = make_folder(find_policy("cp")[1], load_machine(MACHINE), NEAR).code
    assert "#define REGIONS 65536" in code
    assert "#define ROUNDS 1024" in code
    assert "s64 policy_s_size = 16;" in code  # half of 32 frames


def test_a_policy_that_asks_for_allocations_is_refused() -> None:
    with pytest.raises(TidegateError, match="which a driver's hooks do not tell"):
        make_folder(find_policy("rgp")[1], load_machine(MACHINE), NEAR)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("tree(threshold=1)", {"uvm_perf_prefetch_threshold": 1}),
        ("tree", {"uvm_perf_prefetch_threshold": 51}),
        ("region", {"uvm_perf_prefetch_threshold": 1}),
        ("none", {"uvm_perf_prefetch_enable": 0}),
        (
            "acbm(threshold=64)",
            {
                "uvm_perf_access_counter_migration_enable": 1,
                "uvm_perf_access_counter_threshold": 64,
            },
        ),
    ],
)
def test_settings(spec: str, expected: dict[str, int]) -> None:
    policy = find_policy(spec)[1]
    assert settings_of(policy, load_machine(MACHINE)) == expected
    line = emit_modprobe(policy, spec, load_machine(MACHINE)).splitlines()[-1]
    assert line.startswith("options nvidia-uvm ")
    for name, value in expected.items():
        assert f"{name}={value}" in line


def test_a_machine_with_other_batches_sets_them() -> None:
    machine = load_machine(f"{MACHINE}(driver.batch_faults=512)")
    found = settings_of(find_policy("lrm")[1], machine)
    assert found == {"uvm_perf_fault_batch_count": 512}


@pytest.mark.parametrize("spec", ["cp", "fdp", "host", "acbm(granularity=16MiB)", "lrm"])
def test_what_the_stock_driver_cannot_be_set_to(spec: str) -> None:
    with pytest.raises(TidegateError, match=r"cannot be set|no setting|nothing to set"):
        emit_modprobe(find_policy(spec)[1], spec, load_machine(MACHINE))


def test_policies_are_found_by_name_file_and_kind() -> None:
    lagged = Path(__file__).parents[2] / "examples" / "lagged.py"
    assert find_policy("fdp+rgp")[0] == "prefetch"
    assert find_policy(f"{lagged}:Lagged")[0] == "eviction"
    assert find_policy("tide")[0] == "eviction"
    assert find_policy("tide", "prefetch")[0] == "prefetch"
    with pytest.raises(UnknownName, match="'fpd'"):
        find_policy("fpd+rgp")
    with pytest.raises(UnknownName, match="kind of policy"):
        find_policy("tide", "evictions")
