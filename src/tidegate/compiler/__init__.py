"""Models of OpenMP offload programs, from their LLVM IR, by Li and Chapman's compiler analysis
(SC'19, section 4).
"""

from tidegate.compiler.model import (
    Argument,
    DataObject,
    KernelRegion,
    LaunchSite,
    Note,
    ProgramModel,
    Use,
)
from tidegate.compiler.program import model_of_ir, model_of_source

__all__ = [
    "Argument",
    "DataObject",
    "KernelRegion",
    "LaunchSite",
    "Note",
    "ProgramModel",
    "Use",
    "model_of_ir",
    "model_of_source",
]
