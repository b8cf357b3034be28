"""Runs a model over windows: PyTorch while training, the exported graph afterwards. Both give the same dictionary."""
import numpy as np

from .windows import by_length


def with_torch(model, windows, device, batch=128):
    """-> {"4emotions": logits, ..., "speech": share, the views of familiar.py, "strangeness"} in the order of the windows."""
    import torch

    from .model import speech_share

    model.eval()

    def run(samples):
        with torch.no_grad():
            mel = model.mel(torch.from_numpy(samples).to(device))
            heard = model.hear(mel)
            seen = model.seen(mel, heard)
            out = {**model.answer(heard.summary), "speech": speech_share(heard.voice), **seen,
                   "strangeness": model.strangeness(seen)}
        return {n: x.float().cpu().numpy() for n, x in out.items()}

    return _over(windows, run, batch)


def with_graph(session, windows, batch=8):
    """The same from an onnxruntime session, but calibrated probabilities instead of logits."""
    names = [o.name for o in session.get_outputs()]
    return _over(windows, lambda x: dict(zip(names, session.run(names, {"samples": x}))), batch)


def _over(windows, run, batch):
    out = {}
    for rows in by_length(windows, batch):
        answer = run(np.stack([windows.samples[i] for i in rows]))
        for name, values in answer.items():
            if name not in out:
                out[name] = np.zeros((len(windows.samples), *values.shape[1:]), np.float32)
            out[name][rows] = values
    return out
