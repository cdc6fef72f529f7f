"""A separate program: reads IR from standard input, prints LLVM's branch probabilities to standard
error.

LLVM prints them only with an option that holds for the whole process. This process does nothing
else, so that Numba's compilations elsewhere print nothing. It starts quickly because it imports
nothing of Tidegate.
"""

from __future__ import annotations

import sys
import tempfile

import llvmlite.binding as llvm


def main() -> None:
    """Print the probabilities of every function, followed by the line that names the function."""
    llvm.initialize_native_target()
    module = llvm.parse_assembly(sys.stdin.read())
    machine = llvm.Target.from_default_triple().create_target_machine()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    # the one pass here that computes the probabilities; its drawings are deleted
    passes.add_cfg_only_printer_pass()
    with tempfile.TemporaryDirectory() as drawings:
        llvm.set_option("tidegate", "-print-bpi")
        llvm.set_option("tidegate", f"-cfg-dot-filename-prefix={drawings}/cfg")
        passes.run(module, builder)


if __name__ == "__main__":
    main()
