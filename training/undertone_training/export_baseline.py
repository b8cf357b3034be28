"""Writes the untouched float32 Whisper base encoder as ONNX: what bench/model measures the shipped models against.

    python -m undertone_training.export_baseline ENCODER.npz OUT.onnx
"""
import sys

import numpy as np
import onnx

from .encoder import Encoder
from .export import VoiceGraph


class BaselineGraph(VoiceGraph):
    """Full float32 encoder, last state only."""

    def build_features(self):
        mixed = self.encoder(self.log_mel("samples"))
        self.g.node("Identity", mixed, name="features")
        return self.g.model({"samples": ["batch", "n"]}, {"features": ["batch", "frames", 512]})


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    encoder = Encoder(layers=6)
    encoder.load_pretrained(arguments[0])
    state = {f"encoder.{k}": v.numpy() for k, v in encoder.state_dict().items()}
    # All weight on the last layer: the features are the encoder's own last state.
    state["layer_weights"] = np.array([-100.0] * 6 + [0.0])
    onnx.save(BaselineGraph(state, 6, ()).build_features(), arguments[1])


if __name__ == "__main__":
    main(sys.argv[1:])
