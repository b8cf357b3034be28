"""
Writes a trained model as one ONNX graph: raw 16 kHz samples in, calibrated probabilities out.

Everything between (scaling, log-mel, encoder, heads, calibration, the flat answer without speech) is inside the graph,
so that this code and the service cannot differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .calibration import LEAST_OOD, OOD_POWER
from .frontend import (
    FFT,
    FULL_SPEECH,
    HEAD_WIDTH,
    HOP,
    SILENCE_RMS,
    TARGET_RMS,
    Array,
    dft_kernels,
    mel_filters,
    noise_bed,
    ood_block,
    quantise_weight,
)
from .graph import GraphWriter
from .labels import MODELS


class VoiceGraph:
    """Builds the graph from a state dict of numpy arrays. `ranges` (name -> (low, high)) asks for int8 products."""

    def __init__(
        self,
        state: Mapping[str, Array],
        halve_after: Sequence[int],
        ranges: Mapping[str, tuple[float, float]] | None = None,
        *,
        bed: bool = False,
    ) -> None:
        self.state, self.halve_after, self.ranges, self.bed = dict(state), tuple(halve_after), ranges or {}, bed
        self.layers = len(state["layer_weights"]) - 1
        self.width = len(state["norm.weight"])
        # [out, in, 3] -> [out, 3, in]: the order in which the three neighbours are concatenated.
        self.state["encoder.conv2.weight"] = state["encoder.conv2.weight"].transpose(0, 2, 1)
        self.g = GraphWriter()

    def linear(self, x: str, name: str) -> str:
        """A dense layer; in int8 where the range of its input is known."""
        g, weight = self.g, self.state[f"{name}.weight"]
        weight = weight.reshape(len(weight), -1)
        if name in self.ranges:
            low, high = self.ranges[name]
            step = np.float32((high - low) / 255)
            quantised, scales = quantise_weight(weight)
            w = g.node("DequantizeLinear", quantised.T.copy(), scales, np.zeros(len(scales), np.int8), axis=1)
            # Both inputs are rounded to a byte, so the runtime computes the product with integers.
            product = g.node("MatMul", self.rounded(x, step, round(-low / step)), w)
        else:
            product = g.node("MatMul", x, g.half_constant(weight.T))
        return g.node("Add", product, self.state[f"{name}.bias"])

    def rounded(self, x: str, step: Array, zero: int) -> str:
        """Round to a byte."""
        level = np.uint8(np.clip(zero, 0, 255))
        return self.g.node("DequantizeLinear", self.g.node("QuantizeLinear", x, step, level), step, level)

    def norm(self, x: str, name: str) -> str:
        """Layer normalisation."""
        weight, bias = self.state[f"{name}.weight"], self.state[f"{name}.bias"]
        return self.g.node("LayerNormalization", x, weight, bias, axis=-1, epsilon=1e-5)

    def mean_over(self, x: str, axes: Sequence[int], *, keep: bool = True) -> str:
        """The mean over some axes."""
        return self.g.node("ReduceMean", x, np.array(axes), keepdims=int(keep))

    def log_mel(self, samples: str) -> str:
        """The same as encoder.LogMel."""
        g = self.g
        samples = g.node("Sub", samples, self.mean_over(samples, [1]))
        power = self.mean_over(g.node("Mul", samples, samples), [1])
        rms = g.node("Max", g.node("Sqrt", power), np.float32(SILENCE_RMS))
        samples = g.node("Mul", samples, g.node("Div", np.float32(TARGET_RMS), rms))
        padded = g.node("Pad", samples, np.array([0, FFT // 2, 0, FFT // 2]), mode="reflect")
        padded = g.node("Unsqueeze", padded, np.array([1]))
        spectrum = g.node("Conv", padded, g.constant(dft_kernels()), strides=[HOP], kernel_shape=[FFT])
        spectrum = g.node("Slice", spectrum, np.array([0]), np.array([-1]), np.array([2]))
        power = g.node("Mul", spectrum, spectrum)
        # Real and imaginary squares are added by the mel bands themselves: both halves meet the same bank.
        bands = np.concatenate([mel_filters()] * 2, 1)
        mel = g.node("MatMul", g.constant(bands), power)
        if self.bed:
            mel = g.node("Add", mel, noise_bed().reshape(-1, 1))
        mel = g.node("Max", mel, np.float32(1e-10))
        log = g.node("Mul", g.node("Log", mel), np.float32(1 / math.log(10)))
        top = g.node("ReduceMax", log, np.array([1, 2]), keepdims=1)
        log = g.node("Max", log, g.node("Sub", top, np.float32(8)))
        return g.node("Mul", g.node("Add", log, np.float32(4)), np.float32(0.25))

    def convolutions(self, mel: str) -> str:
        """
        -> [batch, frames, width].

        The second convolution, over every other frame, is one product over three neighbours side by side, so that
        it can be an int8 product like the others.
        """
        g, s = self.g, self.state
        kernels = g.half_constant(s["encoder.conv1.weight"])
        x = g.node("Conv", mel, kernels, s["encoder.conv1.bias"], pads=[1, 1], kernel_shape=[3])
        x = g.node("Transpose", g.node("Gelu", x), perm=[0, 2, 1])
        x = g.node("Pad", x, np.array([0, 1, 0, 0, 1, 0]))
        # An even number of padded frames leaves the last one without a third neighbour; it is dropped.
        ends = (np.array([-2]), np.array([-1]), np.array([np.iinfo(np.int64).max]))
        taps = [g.node("Slice", x, np.array([k]), end, np.array([1]), np.array([2])) for k, end in enumerate(ends)]
        return g.node("Gelu", self.linear(g.node("Concat", *taps, axis=2), "encoder.conv2"))

    def halve(self, x: str) -> str:
        """Means of neighbouring frames of [batch, frames, width]."""
        g = self.g
        frames = g.node("Shape", x, start=1, end=2)
        half = g.node("Div", frames, np.array([2]))
        x = g.node("Slice", x, np.array([0]), g.node("Mul", half, np.array([2])), np.array([1]))
        shape = g.node("Concat", np.array([0]), half, np.array([2, self.width]), axis=0)
        return self.mean_over(g.node("Reshape", x, shape), [2], keep=False)

    def attend(self, x: str, name: str) -> str:
        """Self-attention over all frames."""
        g = self.g
        q, k, v = g.nodes_of("Split", self.linear(x, f"{name}.qkv"), outputs=3, axis=2, num_outputs=3)
        shape = np.array([0, 0, self.width // HEAD_WIDTH, HEAD_WIDTH])
        q, v = (g.node("Transpose", g.node("Reshape", t, shape), perm=[0, 2, 1, 3]) for t in (q, v))
        k = g.node("Transpose", g.node("Reshape", k, shape), perm=[0, 2, 3, 1])
        scores = g.node("MatMul", g.node("Mul", q, np.float32(HEAD_WIDTH**-0.5)), k)
        mixed = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
        mixed = g.node("Reshape", g.node("Transpose", mixed, perm=[0, 2, 1, 3]), np.array([0, 0, self.width]))
        return self.linear(mixed, f"{name}.out")

    def encoder(self, mel: str) -> tuple[str, str]:
        """The same as Encoder.forward: the mix of all states, and the mean of a late one."""
        g, weights = self.g, np.exp(self.state["layer_weights"])
        weights = (weights / weights.sum()).astype(np.float32)
        x = self.convolutions(mel)
        positions = g.half_constant(self.state["encoder.positions"])
        frames = g.node("Shape", x, start=1, end=2)
        x = g.node("Add", x, g.node("Slice", positions, np.array([0]), frames, np.array([0])))
        mixed, late = g.node("Mul", x, weights[0]), x
        for number in range(self.layers + 1):
            if number > 0:
                name = f"encoder.blocks.{number - 1}"
                x = g.node("Add", x, self.attend(self.norm(x, name + ".ln1"), name))
                inner = g.node("Gelu", self.linear(self.norm(x, name + ".ln2"), name + ".fc1"))
                x = g.node("Add", x, self.linear(inner, name + ".fc2"))
                mixed = g.node("Add", mixed, g.node("Mul", x, weights[number]))
            if number == ood_block(self.layers):
                late = x
            if number in self.halve_after:
                x, mixed = self.halve(x), self.halve(mixed)
        return mixed, self.mean_over(late, [1], keep=False)

    def speech(self, x: str) -> str:
        """The share of frames with a voice, the graph's second kind of output."""
        voiced = self.g.node("Sigmoid", self.linear(x, "voice"))
        return self.g.node("ReduceMean", voiced, np.array([1, 2]), keepdims=0, name="speech")

    def summary(self, x: str) -> str:
        """Mean and deviation over time, weighted by learned attention."""
        g = self.g
        weight = self.linear(g.node("Tanh", self.linear(x, "attention.0")), "attention.2")
        weighted = g.node("Mul", x, g.node("Softmax", weight, axis=1))
        mean = g.node("ReduceSum", weighted, np.array([1]), keepdims=0)
        square = g.node("ReduceSum", g.node("Mul", weighted, x), np.array([1]), keepdims=0)
        variance = g.node("Sub", square, g.node("Mul", mean, mean))
        return g.node("Concat", mean, g.node("Sqrt", g.node("Max", variance, np.float32(1e-5))), axis=1)

    def ood_score(self, feature: str) -> str:
        """The Mahalanobis out-of-distribution score (ood.py), to the power by which the temperature grows with it."""
        g = self.g
        away = g.node("Sub", feature, self.state["ood_mean"])
        away = g.node("MatMul", away, g.half_constant(self.state["ood_root"]))
        distance = g.node("Sqrt", g.node("ReduceSum", g.node("Mul", away, away), np.array([1]), keepdims=1))
        return g.node("Pow", g.node("Max", distance, np.float32(LEAST_OOD)), np.float32(OOD_POWER))

    def head(self, embedding: str, score: str, amount: str, name: str, temperature: float) -> None:
        """Calibrated probabilities, moved towards the flat answer where speech is missing."""
        g, size = self.g, MODELS[name]
        logits = g.node("Mul", self.linear(embedding, f"heads.{name}"), np.float32(1 / temperature))
        spoken = g.node("Mul", g.node("Softmax", g.node("Div", logits, score), axis=1), amount)
        flat = g.node("Mul", g.node("Sub", np.float32(1), amount), np.float32(1 / size))
        g.node("Add", spoken, flat, name=name)

    def build(self, temperatures: Mapping[str, float], metadata: Mapping[str, str] | None = None) -> Any:
        """Return the whole graph as an ONNX model."""
        g = self.g
        mel = self.log_mel("samples")
        mixed, feature = self.encoder(mel)
        x = self.norm(mixed, "norm")
        share = g.node("Unsqueeze", self.speech(x), np.array([1]))
        amount = g.node("Clip", g.node("Mul", share, np.float32(1 / FULL_SPEECH)), np.float32(0), np.float32(1))
        score = self.ood_score(feature)
        embedding = g.node("Gelu", self.linear(self.summary(x), "embed"))
        for name in MODELS:
            self.head(embedding, score, amount, name, temperatures[name])
        outputs: dict[str, list[str | int]] = {name: ["batch", size] for name, size in MODELS.items()}
        return g.model({"samples": ["batch", "n"]}, {**outputs, "speech": ["batch"]}, metadata)


def uncalibrated() -> dict[str, float]:
    """Temperatures that change nothing."""
    return dict.fromkeys(MODELS, 1.0)
