"""Fine-tunes the encoder on emotional voices; then, if asked, one more model on the common answer of several."""
import copy
import math

import torch
from torch.nn import functional as F

from . import quantise
from .augment import mask_mel
from .batches import BatchMaker
from .labels import MODELS
from .model import VoiceModel
from .progress import Progress
from .words import WordEar

# Weight of each head in the loss.
HEAD_WEIGHTS = {"4emotions": 1.0, "5emotions": 0.5, "7emotions": 1.0}
VOICE_WEIGHT = 0.3
TEACHER_TEMPERATURE = 1.5
SETTLING = 20  # batches that are looked at before something is fixed by them; a run of fewer steps looks at no more than it has
AVERAGE_EVERY = 4  # steps between two updates of the running average of the weights


def restricted(target, size):
    """A soft label over the first `size` emotions, and which rows have one (what was meant is among them)."""
    part = target[:, :size]
    total = part.sum(1, keepdim=True)
    return part / total.clamp(min=1e-6)


def label_loss(logits, batch, smoothing):
    total = 0
    for name, size in MODELS.items():
        rows = batch.known & (batch.emotion < size)
        target = restricted(batch.target, size) * (1 - smoothing) + smoothing / size
        loss = -(target * logits[name].float().log_softmax(1)).sum(1)
        total = total + HEAD_WEIGHTS[name] * (loss * rows).sum() / rows.sum().clamp(min=1)
    return total


def teacher_loss(logits, answers, batch):
    """Distance to the teachers' common answer, on every window with a voice: also where a head knows no label."""
    total = 0
    for name in MODELS:
        loss = -(answers[name] * (logits[name].float() / TEACHER_TEMPERATURE).log_softmax(1)).sum(1)
        total = total + HEAD_WEIGHTS[name] * (loss * batch.known).sum() / batch.known.sum().clamp(min=1)
    return total * TEACHER_TEMPERATURE


def voice_loss(voice, batch):
    target = F.adaptive_avg_pool1d(batch.voice[:, None], voice.shape[1]).squeeze(1)
    return F.binary_cross_entropy_with_logits(voice.float(), target)


def common_answer(teachers, mel):
    total = None
    for teacher in teachers:
        logits, _ = teacher.from_mel(mel)
        answer = {n: (x.float() / TEACHER_TEMPERATURE).softmax(1) / len(teachers) for n, x in logits.items()}
        total = answer if total is None else {n: total[n] + answer[n] for n in answer}
    return total


def parameter_groups(model, training):
    """Earlier layers change less: they hold what speech is, the later ones what is made of it."""
    layers = len(model.encoder.blocks)
    groups = []
    for name, parameter in model.named_parameters():
        rate = training.head_rate
        if name.startswith("encoder."):
            depth = int(name.split(".")[2]) + 1 if name.startswith("encoder.blocks.") else 0
            rate = training.encoder_rate * training.layer_decay ** (layers - depth)
        decay = training.weight_decay if parameter.dim() > 1 else 0.0
        groups.append({"params": [parameter], "lr": rate, "peak": rate, "weight_decay": decay})
    merged = {}
    for group in groups:
        merged.setdefault((group["peak"], group["weight_decay"]), dict(group, params=[]))["params"] += group["params"]
    return list(merged.values())


def window_plan(step, training):
    """Length and kind of the windows of one step: mostly the service's own, shorter and longer ones between."""
    turn = step % 10
    if turn in (2, 6):
        return training.batch, 1.5 + (step * 37 % 11) * 0.25, True
    if turn == 4:
        return training.batch * 5 // 8, 6.0 + (step // 10 % 9) * 0.5, False
    return training.batch, training.seconds, False


def new_model(training, device):
    torch.manual_seed(7)  # all runs begin with the same heads, so that they may be averaged
    model = VoiceModel(training.layers, training.halve_after, training.dropout, knows_words=training.words > 0)
    model.encoder.load_pretrained(training.encoder)
    return model.to(device)


def fit(pack, keep, corpus_weights, training, device, model=None, teachers=(), steps=None, rounding=False, words=False,
        seed=None, label="training"):
    """-> the trained model (the running average of its weights)."""
    seed = training.seed if seed is None else seed
    steps = steps or training.steps
    settling = min(SETTLING, steps)
    model = model or new_model(training, device)
    torch.manual_seed(seed)
    maker = BatchMaker(pack, keep, corpus_weights, training.votes, device, seed)
    average = copy.deepcopy(model).eval()
    mixed = device.startswith("cuda")
    fused = {"fused": True} if mixed else {}
    groups = parameter_groups(model, training)
    if words:
        ear = WordEar(training, device)
        ear.settle(model.mel(maker.make(*window_plan(0, training)).samples) for _ in range(settling))
        groups.append({"params": list(ear.guess.parameters()), "lr": training.head_rate, "peak": training.head_rate})
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.98), **fused)
    progress = Progress(label, steps)
    begin_rounding = int(steps * training.rounding_from) if rounding else steps + 1
    for step in range(steps):
        done = step / steps
        rate = min(1.0, done / training.warmup + 1e-3) * 0.5 * (1 + math.cos(math.pi * done))
        for group in optimiser.param_groups:
            group["lr"] = group["peak"] * rate
        if step == begin_rounding:
            settle_ranges(model, maker, training, mixed, settling)
            average.load_state_dict(model.state_dict())
            quantise.set_mode(average, watching=False, active=True)
        batch = maker.make(*window_plan(step, training))
        model.train()
        with torch.no_grad():
            mel = model.mel(batch.samples)
            masked = mask_mel(mel, maker.generator)
        with torch.autocast("cuda" if mixed else "cpu", dtype=torch.bfloat16, enabled=mixed):
            heard = model.hear(masked)
            logits = model.answer(heard.summary)
            loss = label_loss(logits, batch, training.smoothing)
            if teachers:
                with torch.no_grad():
                    answers = common_answer(teachers, mel)
                share = training.distill
                loss = (1 - share) * loss + share * teacher_loss(logits, answers, batch)
            loss = loss + VOICE_WEIGHT * voice_loss(heard.voice, batch)
            if words:
                loss = loss + training.words * ear.loss(mel, heard.last)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimiser.step()
        if step % AVERAGE_EVERY == 0:
            update_average(average, model, min(training.averaging ** AVERAGE_EVERY, (1 + step) / (20 + step)))
        if progress.done % 50 == 49:
            progress.step(f"loss {loss.item():.3f},")
        else:
            progress.step()
    return average


def settle_ranges(model, maker, training, mixed, batches):
    """Watches what the products are given, then turns their rounding on."""
    quantise.set_mode(model, watching=True, active=False)
    with torch.no_grad(), torch.autocast("cuda" if mixed else "cpu", dtype=torch.bfloat16, enabled=mixed):
        for number in range(batches):
            model.from_mel(model.mel(maker.make(*window_plan(number, training)).samples))
    quantise.set_mode(model, watching=False, active=True)


@torch.no_grad()
def update_average(average, model, keep):
    for a, b in zip(average.parameters(), model.parameters()):
        a.mul_(keep).add_(b, alpha=1 - keep)
