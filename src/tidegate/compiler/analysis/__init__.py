"""Analysis of the IR: control flow, pointers, launches, localities, reuse distances."""
