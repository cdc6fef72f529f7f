"""Programs to run: each module derives what one kernel touches from its index functions."""

from tidegate.workloads.program import Program, Workload, workload, workloads

__all__ = ["Program", "Workload", "workload", "workloads"]
