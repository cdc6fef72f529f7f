"""Plans by tensor: copies beside the kernels that are planned before the program begins."""
