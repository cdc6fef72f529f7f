"""The example programs of examples/openmp as workloads, with their compiler's plans (SC'19)."""
