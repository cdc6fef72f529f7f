"""The example programs of examples/openmp as workloads, with the plan their compiler analysis makes
(SC'19).
"""
