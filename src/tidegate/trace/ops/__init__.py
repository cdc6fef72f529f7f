"""Op traces: launches, their operands and the tensors of a program, without pages.

    recorders, importers ──▶ OpsBuilder ──▶ Ops ──▶ save_ops, load_ops    one small Parquet file
                                             └──▶ OpTrace                 pages, for a geometry

Pages, an allocator and a machine's rates are chosen when ops are loaded, so a file of some hundred
kilobytes stands for millions of touches.
"""

from tidegate.trace.ops.build import OpsBuilder
from tidegate.trace.ops.file import holds_ops, load_ops, save_ops
from tidegate.trace.ops.ops import KINDS, Ops
from tidegate.trace.ops.trace import OpLayout, OpTrace

__all__ = ["KINDS", "OpLayout", "OpTrace", "Ops", "OpsBuilder", "holds_ops", "load_ops", "save_ops"]
