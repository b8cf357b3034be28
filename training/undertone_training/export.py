"""Writes a trained model as one ONNX graph: raw 16 kHz samples in, calibrated probabilities out.

Everything between (scaling, log-mel, encoder, heads, calibration, the flat answer where nobody speaks) is
inside the graph, so that nothing can drift between this code and the service.
"""
import math

import numpy as np

from .calibrate import LEAST_STRANGE
from .frontend import (FFT, FULL_SPEECH, HEADS, HOP, SILENCE_RMS, TARGET_RMS, WEIGHT_LEVELS, WIDTH, dft_kernels,
                       mel_filters, noise_bed)
from .graph import GraphWriter
from .labels import MODELS

def quantise_weight(weight):
    """[out, in] float -> int8 [in, out] and one scale for each output."""
    scale = np.maximum(np.abs(weight).max(1), 1e-8) / WEIGHT_LEVELS
    return np.round(weight / scale[:, None]).astype(np.int8).T.copy(), scale.astype(np.float32)


class VoiceGraph:
    """Builds the graph from a state dict of numpy arrays. `ranges` (name -> (low, high)) asks for int8 products."""

    def __init__(self, state, layers, halve_after, ranges=None):
        self.state, self.layers, self.halve_after, self.ranges = dict(state), layers, tuple(halve_after), ranges
        # [out, in, 3] -> [out, 3, in]: the order in which the three neighbours stand side by side.
        self.state["encoder.conv2.weight"] = state["encoder.conv2.weight"].transpose(0, 2, 1)
        self.g = GraphWriter()

    def linear(self, x, name):
        """A dense layer; in int8 where a range of its input is known."""
        g, weight = self.g, self.state[f"{name}.weight"]
        weight = weight.reshape(len(weight), -1)
        if self.ranges is None or name not in self.ranges:
            product = g.node("MatMul", x, g.half_constant(weight.T))
        else:
            low, high = self.ranges[name]
            step = np.float32((high - low) / 255)
            quantised, scales = quantise_weight(weight)
            weight = g.constant(quantised), scales
            coarse = self.rounded(x, step, round(-low / step))
            product = self.int8_product(coarse, *weight)
            # One byte is not enough: noise that nobody can hear would move an undecided answer by several hundredths.
            # A second byte holds what the first leaves over.
            rest = self.rounded(g.node("Sub", x, coarse), np.float32(step / 250), 128)
            product = g.node("Add", product, self.int8_product(rest, *weight))
        return g.node("Add", product, self.state[f"{name}.bias"])

    def rounded(self, x, step, zero):
        zero = np.uint8(np.clip(zero, 0, 255))
        return self.g.node("DequantizeLinear", self.g.node("QuantizeLinear", x, step, zero), step, zero)

    def int8_product(self, x, weight, scales):
        w = self.g.node("DequantizeLinear", weight, scales, np.zeros(len(scales), np.int8), axis=1)
        return self.g.node("MatMul", x, w)

    def norm(self, x, name):
        return self.g.node("LayerNormalization", x, self.state[f"{name}.weight"], self.state[f"{name}.bias"],
                           axis=-1, epsilon=1e-5)

    def log_mel(self, samples):
        g = self.g
        samples = g.node("Sub", samples, g.node("ReduceMean", samples, np.array([1]), keepdims=1))
        power = g.node("ReduceMean", g.node("Mul", samples, samples), np.array([1]), keepdims=1)
        rms = g.node("Max", g.node("Sqrt", power), np.float32(SILENCE_RMS))
        samples = g.node("Mul", samples, g.node("Div", np.float32(TARGET_RMS), rms))
        padded = g.node("Pad", samples, np.array([0, FFT // 2, 0, FFT // 2]), mode="reflect")
        padded = g.node("Unsqueeze", padded, np.array([1]))
        spectrum = g.node("Conv", padded, g.constant(dft_kernels()), strides=[HOP], kernel_shape=[FFT])
        spectrum = g.node("Slice", spectrum, np.array([0]), np.array([-1]), np.array([2]))
        power = g.node("Mul", spectrum, spectrum)
        # Real and imaginary squares are added by the mel bands themselves: both halves meet the same bank.
        bands = np.concatenate([mel_filters()] * 2, 1)
        mel = g.node("Add", g.node("MatMul", g.constant(bands), power), noise_bed()[:, None])
        mel = g.node("Max", mel, np.float32(1e-10))
        log = g.node("Mul", g.node("Log", mel), np.float32(1 / math.log(10)))
        top = g.node("ReduceMax", log, np.array([1, 2]), keepdims=1)
        log = g.node("Max", log, g.node("Sub", top, np.float32(8)))
        return g.node("Mul", g.node("Add", log, np.float32(4)), np.float32(0.25))

    def convolutions(self, mel):
        """-> [batch, frames, width]. The second convolution, over every other frame, is one product over three
        neighbours side by side, so that it can be an int8 product like the others."""
        g, s = self.g, self.state
        x = g.node("Conv", mel, g.half_constant(s["encoder.conv1.weight"]), s["encoder.conv1.bias"],
                   pads=[1, 1], kernel_shape=[3])
        x = g.node("Transpose", g.node("Gelu", x), perm=[0, 2, 1])
        x = g.node("Pad", x, np.array([0, 1, 0, 0, 1, 0]))
        last = np.iinfo(np.int64).max
        # An even number of padded frames leaves the last one without a third neighbour; it is dropped.
        ends = (np.array([-2]), np.array([-1]), np.array([last]))
        taps = [g.node("Slice", x, np.array([k]), end, np.array([1]), np.array([2])) for k, end in enumerate(ends)]
        return g.node("Gelu", self.linear(g.node("Concat", *taps, axis=2), "encoder.conv2"))

    def halve(self, x):
        """Means of neighbouring frames of [batch, frames, width]."""
        g = self.g
        frames = g.node("Shape", x, start=1, end=2)
        half = g.node("Div", frames, np.array([2]))
        x = g.node("Slice", x, np.array([0]), g.node("Mul", half, np.array([2])), np.array([1]))
        shape = g.node("Concat", np.array([0]), half, np.array([2, WIDTH]), axis=0)
        return g.node("ReduceMean", g.node("Reshape", x, shape), np.array([2]), keepdims=0)

    def attend(self, x, name):
        g, depth = self.g, WIDTH // HEADS
        qkv = g.node("Split", self.linear(x, f"{name}.qkv"), axis=2, num_outputs=3, outputs=3)
        shape = np.array([0, 0, HEADS, depth])
        q, v = (g.node("Transpose", g.node("Reshape", t, shape), perm=[0, 2, 1, 3]) for t in (qkv[0], qkv[2]))
        k = g.node("Transpose", g.node("Reshape", qkv[1], shape), perm=[0, 2, 3, 1])
        scores = g.node("MatMul", g.node("Mul", q, np.float32(depth**-0.5)), k)
        mixed = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)
        mixed = g.node("Reshape", g.node("Transpose", mixed, perm=[0, 2, 1, 3]), np.array([0, 0, WIDTH]))
        return self.linear(mixed, f"{name}.out")

    def encoder(self, mel):
        """The same walk as Encoder.forward: the mix of all states, and the last one."""
        g, weights = self.g, np.exp(self.state["layer_weights"])
        weights = (weights / weights.sum()).astype(np.float32)
        x = self.convolutions(mel)
        positions = g.half_constant(self.state["encoder.positions"])
        frames = g.node("Shape", x, start=1, end=2)
        x = g.node("Add", x, g.node("Slice", positions, np.array([0]), frames, np.array([0])))
        mixed = g.node("Mul", x, weights[0])
        for number in range(self.layers + 1):
            if number > 0:
                name = f"encoder.blocks.{number - 1}"
                x = g.node("Add", x, self.attend(self.norm(x, name + ".ln1"), name))
                inner = g.node("Gelu", self.linear(self.norm(x, name + ".ln2"), name + ".fc1"))
                x = g.node("Add", x, self.linear(inner, name + ".fc2"))
                mixed = g.node("Add", mixed, g.node("Mul", x, weights[number]))
            if number in self.halve_after:
                x, mixed = self.halve(x), self.halve(mixed)
        return mixed, x

    def speech(self, x):
        g = self.g
        voiced = g.node("Sigmoid", self.linear(x, "voice"))
        return g.node("ReduceMean", voiced, np.array([1, 2]), keepdims=0, name="speech")

    def summary(self, x):
        """Mean and deviation over time, weighted by learned attention."""
        g = self.g
        weight = self.linear(g.node("Tanh", self.linear(x, "attention.0")), "attention.2")
        weighted = g.node("Mul", x, g.node("Softmax", weight, axis=1))
        mean = g.node("ReduceSum", weighted, np.array([1]), keepdims=0)
        square = g.node("ReduceSum", g.node("Mul", weighted, x), np.array([1]), keepdims=0)
        return self.with_deviation(mean, square)

    def spectrum(self, mel):
        """The same of the log-mel's bands, every frame counting alike."""
        g = self.g
        mean, square = (g.node("ReduceMean", x, np.array([2]), keepdims=0) for x in (mel, g.node("Mul", mel, mel)))
        return self.with_deviation(mean, square)

    def with_deviation(self, mean, square):
        g = self.g
        variance = g.node("Sub", square, g.node("Mul", mean, mean))
        deviation = g.node("Sqrt", g.node("Max", variance, np.float32(1e-5)))
        return g.node("Concat", mean, deviation, axis=1)

    def doubt(self, **seen):
        """What the temperature is multiplied by: the stranger the voice, the more modest the answer."""
        g = self.g
        far = []
        for name, view in seen.items():
            away = g.node("Sub", view, self.state[f"familiar_{name}_mean"])
            away = g.node("MatMul", away, g.half_constant(self.state[f"familiar_{name}_root"]))
            far.append(g.node("ReduceSum", g.node("Mul", away, away), np.array([1]), keepdims=1))
        return g.node("Max", g.node("Mean", *far), np.float32(LEAST_STRANGE))

    def head(self, embedding, doubt, amount, name, temperature):
        """Calibrated probabilities, moved towards the flat answer where speech is missing."""
        g, size = self.g, MODELS[name]
        logits = g.node("Mul", self.linear(embedding, f"heads.{name}"), np.float32(1 / temperature))
        logits = g.node("Div", logits, doubt)
        spoken = g.node("Mul", g.node("Softmax", logits, axis=1), amount)
        flat = g.node("Mul", g.node("Sub", np.float32(1), amount), np.float32(1 / size))
        g.node("Add", spoken, flat, name=name)

    def build(self, temperatures, metadata=None):
        g = self.g
        mel = self.log_mel("samples")
        mixed, last = self.encoder(mel)
        x = self.norm(mixed, "norm")
        share = g.node("Unsqueeze", self.speech(x), np.array([1]))
        amount = g.node("Clip", g.node("Mul", share, np.float32(1 / FULL_SPEECH)), np.float32(0), np.float32(1))
        summary = self.summary(x)
        knows_words = "familiar_words_mean" in self.state
        heard = {"words": g.node("ReduceMean", last, np.array([1]), keepdims=0)} if knows_words else {"summary": summary}
        doubt = self.doubt(**heard, spectrum=self.spectrum(mel))
        embedding = g.node("Gelu", self.linear(summary, "embed"))
        for name in MODELS:
            self.head(embedding, doubt, amount, name, temperatures[name])
        outputs = {name: ["batch", size] for name, size in MODELS.items()}
        return g.model({"samples": ["batch", "n"]}, {**outputs, "speech": ["batch"]}, metadata)


def uncalibrated():
    return {name: 1.0 for name in MODELS}
