"""Moving bytes between near memory, the middle tier and files, without losing a write."""
