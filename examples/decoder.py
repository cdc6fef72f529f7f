"""Decode with a language model whose weights are larger than the RAM they are given.

    python examples/decoder.py --make weights.safetensors --layers 24 --width 1024
    python examples/decoder.py weights.safetensors --near 128MiB --tokens 16

The weights are random, so the text means nothing; what is loaded, and when, is a decoder's.
"""

from __future__ import annotations

import argparse
import json
import math
import struct
import time
from pathlib import Path

import numpy as np

from tidegate.live import load_safetensors

VOCABULARY, HEADS = 256, 8


def make_weights(path: Path, layers: int, width: int, seed: int = 0) -> None:
    """Write random weights of a decoder in the safetensors format, layer by layer."""
    shapes = {"embedding": (VOCABULARY, width)}
    for layer in range(layers):
        for name, shape in {"qkv": (3, 1), "out": (1, 1), "up": (4, 1), "down": (1, 4)}.items():
            shapes[f"{layer}.{name}"] = (shape[0] * width, shape[1] * width)
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    said = json.dumps(header).encode()
    said += b" " * (-len(said) % 8)
    draw = np.random.default_rng(seed)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(said)) + said)
        for shape in shapes.values():
            values = draw.standard_normal(shape, dtype=np.float32) / math.sqrt(shape[1])
            file.write(values.tobytes())


def normalised(x):
    return x / np.sqrt((x * x).mean() + 1e-6)


class Decoder:
    """A transformer without biases; ``weights`` is anything that has arrays by name."""

    def __init__(self, weights):
        self.weights = weights
        self.layers = sum(name.endswith(".qkv") for name in weights)
        self.cache = [([], []) for _ in range(self.layers)]

    def next_token(self, token: int) -> int:
        x = self.weights["embedding"][token]
        for layer in range(self.layers):
            x = x + self.attend(layer, normalised(x))
            hidden = np.maximum(self.weights[f"{layer}.up"] @ normalised(x), 0)
            x = x + self.weights[f"{layer}.down"] @ hidden
        return int(np.argmax(self.weights["embedding"] @ normalised(x)))

    def attend(self, layer: int, x):
        query, key, value = (self.weights[f"{layer}.qkv"] @ x).reshape(3, HEADS, -1)
        keys, values = self.cache[layer]
        keys.append(key)
        values.append(value)
        scores = np.einsum("hd,thd->ht", query, np.array(keys)) / math.sqrt(query.shape[1])
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        mixed = np.einsum("ht,thd->hd", shares, np.array(values))
        return self.weights[f"{layer}.out"] @ mixed.ravel()


def decode(weights, tokens: int) -> list[int]:
    """Return the tokens that follow token 1."""
    decoder, text = Decoder(weights), [1]
    for _ in range(tokens):
        text.append(decoder.next_token(text[-1]))
    return text[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("weights", type=Path)
    parser.add_argument("--make", action="store_true", help="write random weights and stop")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--near", default="64MiB", help="RAM for the weights")
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--eviction", default="loop")
    asked = parser.parse_args()
    if asked.make:
        make_weights(asked.weights, asked.layers, asked.width)
        return
    with load_safetensors(asked.weights, near=asked.near, eviction=asked.eviction) as weights:
        begin = time.perf_counter()
        print(*decode(weights, asked.tokens))
        rate = asked.tokens / (time.perf_counter() - begin)
        read = weights.arena.stats()["bytes_in"] / asked.tokens
    print(f"{rate:.2f} tokens/s, {read / 1e6:.0f} MB read per token")


if __name__ == "__main__":
    main()
