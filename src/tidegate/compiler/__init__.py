"""OpenMP offload programs read from their LLVM IR, as Li and Chapman's compiler analysis does
(SC'19, section 4).
"""

from tidegate.compiler.model import Argument, DataObject, Launch, Note, ProgramModel, Region, Use
from tidegate.compiler.program import model_of_ir, model_of_source

__all__ = [
    "Argument",
    "DataObject",
    "Launch",
    "Note",
    "ProgramModel",
    "Region",
    "Use",
    "model_of_ir",
    "model_of_source",
]
