"""Weights of models as arrays that are paged from their own files: safetensors and GGUF."""
