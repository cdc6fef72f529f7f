"""Named programs that make traces, each derived from a kernel's index functions."""

from tidegate.workloads.program import Program, Workload, workload, workloads

__all__ = ["Program", "Workload", "workload", "workloads"]
