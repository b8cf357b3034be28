"""Fine-tunes the encoder on emotional voices: one run, with a moving average of its weights."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from . import quantise
from .batches import Batch, BatchMaker
from .config import Training
from .encoder import pretrained
from .labels import MODELS
from .model import VoiceModel
from .progress import Progress

# Weight of each head in the loss.
HEAD_WEIGHTS = {"4emotions": 1.0, "5emotions": 0.5, "7emotions": 1.0}
VOICE_WEIGHT = 0.3
OBSERVED = 20  # batches that set the ranges of the rounding
AVERAGE_EVERY = 4  # steps between two updates of the moving average


def label_loss(logits: dict[str, Tensor], batch: Batch, smoothing: float) -> Tensor:
    """Cross-entropy with soft labels, for every head over the windows whose emotion it knows."""
    total = torch.zeros((), device=batch.target.device)
    for name, size in MODELS.items():
        rows = batch.known & (batch.emotion < size)
        part = batch.target[:, :size]
        target = part / part.sum(1, keepdim=True).clamp(min=1e-6) * (1 - smoothing) + smoothing / size
        loss = -(target * logits[name].float().log_softmax(1)).sum(1)
        total = total + HEAD_WEIGHTS[name] * (loss * rows).sum() / rows.sum().clamp(min=1)
    return total


def voice_loss(voice: Tensor, batch: Batch) -> Tensor:
    """Voice activity, frame by frame."""
    target = F.adaptive_avg_pool1d(batch.voice[:, None], voice.shape[1]).squeeze(1)
    return F.binary_cross_entropy_with_logits(voice.float(), target)


def parameter_groups(model: VoiceModel, training: Training, encoder_rate: float) -> list[dict[str, Any]]:
    """Layer-wise decay of the learning rate: early layers change less than later ones."""
    layers = len(model.encoder.blocks)
    merged: dict[tuple[float, float], dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        rate = training.head_rate * encoder_rate / training.encoder_rate
        if name.startswith("encoder."):
            depth = int(name.split(".")[2]) + 1 if name.startswith("encoder.blocks.") else 0
            rate = encoder_rate * training.layer_decay ** (layers - depth)
        decay = training.weight_decay if parameter.dim() > 1 else 0.0
        group = merged.setdefault((rate, decay), {"params": [], "lr": rate, "peak": rate, "weight_decay": decay})
        group["params"].append(parameter)
    return list(merged.values())


def draw(maker: BatchMaker, step: int, training: Training) -> Batch:
    """The windows of one step: mostly 5 s, shorter and longer ones between."""
    turn = step % 10
    if turn in {2, 5, 8}:
        return maker.make(training.batch, 1.5 + (step * 37 % 11) * 0.25, alone=True)
    if turn == 4:
        return maker.make(max(1, training.batch * 5 // 8), 6.0 + (step // 10 % 9) * 0.5)
    return maker.make(training.batch, training.seconds)


def new_model(training: Training, device: str, seed: int) -> VoiceModel:
    """The pretrained encoder under new heads."""
    torch.manual_seed(seed)
    encoder = pretrained(training.encoder, training.layers, training.halve_after)
    model = VoiceModel(encoder, bed=training.bed, dropout=training.dropout)
    model.to(device)
    return model


def fit(
    model: VoiceModel,
    maker: BatchMaker,
    training: Training,
    *,
    seed: int,
    steps: int,
    encoder_rate: float,
    rounding: bool = False,
    label: str = "training",
) -> VoiceModel:
    """Train `model` and return the moving average of its weights. rounding: quantisation-aware, from the first step."""
    torch.manual_seed(seed)
    mixed = maker.device.startswith("cuda")
    if rounding:
        observe_ranges(model, maker, training, min(OBSERVED, steps))
    average = copy.deepcopy(model)
    average.eval()
    optimiser = torch.optim.AdamW(
        parameter_groups(model, training, encoder_rate), betas=(0.9, 0.98), **({"fused": True} if mixed else {})
    )
    progress = Progress(label, steps)
    for step in range(steps):
        done = step / steps
        rate = min(1.0, done / training.warmup + 1e-3) * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * rate
        batch = draw(maker, step, training)
        model.train()
        with torch.no_grad():
            mel = model.mel(batch.samples)
        with torch.autocast("cuda" if mixed else "cpu", dtype=torch.bfloat16, enabled=mixed):
            answer = model.from_mel(mel)
            loss = label_loss(answer.logits, batch, training.smoothing) + VOICE_WEIGHT * voice_loss(answer.voice, batch)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimiser.step()
        if step % AVERAGE_EVERY == 0:
            update_average(average, model, min(training.averaging**AVERAGE_EVERY, (1 + step) / (20 + step)))
        progress.step(f"loss {loss.item():.3f}," if progress.done % 50 == 49 else "")
    return average


def observe_ranges(model: VoiceModel, maker: BatchMaker, training: Training, batches: int) -> None:
    """Measure the input ranges of the products, then turn rounding on."""
    quantise.set_mode(model, observing=True, active=False)
    model.eval()
    with torch.no_grad():
        for number in range(batches):
            model(draw(maker, number, training).samples)
    quantise.set_mode(model, observing=False, active=True)


def update_average(average: VoiceModel, model: VoiceModel, keep: float) -> None:
    """One step of the exponential moving average."""
    with torch.no_grad():
        for a, b in zip(average.parameters(), model.parameters()):
            a.mul_(keep).add_(b, alpha=1 - keep)
