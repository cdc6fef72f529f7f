"""What the IR says: control flow, pointers, launches, localities, reuse distances."""
