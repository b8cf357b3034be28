"""
Writes the untouched float32 Whisper encoder as ONNX: what bench/model measures the shipped models against.

python -m undertone_training.export_baseline ENCODER.npz OUT.onnx
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from .encoder import pretrained, read_arrays
from .export import VoiceGraph


class BaselineGraph(VoiceGraph):
    """Float32 encoder, last state only."""

    def build_features(self) -> Any:
        """Return the graph from samples to features."""
        mixed, _ = self.encoder(self.log_mel("samples"))
        self.g.node("Identity", mixed, name="features")
        return self.g.model({"samples": ["batch", "n"]}, {"features": ["batch", "frames", self.width]})


def main(arguments: Sequence[str]) -> None:
    """Write one graph."""
    if len(arguments) != 2:
        sys.exit(__doc__)
    source, target = arguments
    layers = sum(name.endswith(".q.bias") for name in read_arrays(source))
    encoder = pretrained(source, layers)
    state = {f"encoder.{k}": v.numpy() for k, v in encoder.state_dict().items()}
    # All weight on the last layer: the features are the encoder's own last state.
    state["layer_weights"] = np.array([-100.0] * layers + [0.0])
    state["norm.weight"] = np.ones(encoder.width)
    onnx.save(BaselineGraph(state, ()).build_features(), target)


if __name__ == "__main__":
    main(sys.argv[1:])
