"""Runs a model over windows: PyTorch while training, the exported graph afterwards. Both give the same dictionary."""
import numpy as np

from .labels import MODELS
from .windows import by_length


def with_torch(model, windows, device, batch=128):
    """-> {"4emotions": logits, ..., "speech": share} in the order of the windows."""
    import torch

    model.eval()

    def run(samples):
        with torch.no_grad():
            logits, voice = model(torch.from_numpy(samples).to(device))
        out = {n: x.float().cpu().numpy() for n, x in logits.items()}
        return {**out, "speech": voice.float().sigmoid().mean(1).cpu().numpy()}

    return _over(windows, run, batch)


def with_graph(session, windows, batch=8):
    """The same from an onnxruntime session, but calibrated probabilities instead of logits."""
    names = [o.name for o in session.get_outputs()]
    return _over(windows, lambda x: dict(zip(names, session.run(names, {"samples": x}))), batch)


def _over(windows, run, batch):
    count = len(windows.samples)
    out = {name: np.zeros((count, size), np.float32) for name, size in MODELS.items()}
    out["speech"] = np.zeros(count, np.float32)
    for rows in by_length(windows, batch):
        answer = run(np.stack([windows.samples[i] for i in rows]))
        for name, values in answer.items():
            out[name][rows] = values
    return out
