"""Runs a model over windows: PyTorch while training, the exported graph afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .frontend import Array
from .windows import Windows, by_length

if TYPE_CHECKING:
    from .model import VoiceModel

Outputs = dict[str, Array]


def with_torch(model: VoiceModel, windows: Windows, device: str, batch: int = 128) -> Outputs:
    """Logits of each model, "speech", the features of the out-of-distribution score and "ood", window by window."""
    import torch

    from .model import speech_share

    model.eval()

    def run(samples: Array) -> Outputs:
        with torch.no_grad():
            answer = model(torch.from_numpy(samples).to(device))
            out = {
                **answer.logits,
                **answer.features,
                "speech": speech_share(answer.voice),
                "ood": model.ood_score(answer.features),
            }
        return {name: x.float().cpu().numpy() for name, x in out.items()}

    return _over(windows, run, batch)


def with_graph(session: Any, windows: Windows, batch: int = 8) -> Outputs:
    """Calibrated probabilities of each model and "speech", from an onnxruntime session."""
    names = [o.name for o in session.get_outputs()]
    return _over(windows, lambda x: dict(zip(names, session.run(names, {"samples": x}))), batch)


def _over(windows: Windows, run: Callable[[Array], Outputs], batch: int) -> Outputs:
    out: Outputs = {}
    for rows in by_length(windows, batch):
        answer = run(np.stack([windows.samples[i] for i in rows]))
        for name, values in answer.items():
            if name not in out:
                out[name] = np.zeros((len(windows.samples), *values.shape[1:]), np.float32)
            out[name][rows] = values
    return out
