from .arena.arena import Arena as Arena
from .weights.weights import Weights as Weights
from .weights.weights import load_gguf as load_gguf
from .weights.weights import load_safetensors as load_safetensors
