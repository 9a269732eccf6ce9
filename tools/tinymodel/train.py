"""Training on the CPU, for a given time.

The learning rate follows the clock: it rises over the first steps, then
falls along half a cosine until the time is over. Conversations are generated
as they are needed, so none is seen twice.
"""

import math
import time
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn import functional

from .conversations import Author
from .model import ChatModel
from .samples import EARLIER_ANSWER_WEIGHT, draw_batch

BATCH_SIZE = 16  # conversations
WARM_UP_STEPS = 50
FINAL_RATE_SHARE = 0.03  # of the peak learning rate
MAX_GRADIENT_NORM = 1.0
REPORT_STEPS = 25
SAVE_STEPS = 200
RUNNING_SHARE = 0.03  # what a step adds to the running mean of the loss


@dataclass(frozen=True)
class Settings:
    """How to train."""

    seconds: float
    threads: int = 1
    seed: int = 5
    peak_rate: float = 1.2e-3


@dataclass(frozen=True)
class Batch:
    """Samples as tensors of one length, padded with weight 0."""

    ids: torch.Tensor
    weights: torch.Tensor

    @classmethod
    def of(cls, samples):
        length = max(map(len, samples))
        ids = torch.zeros(len(samples), length, dtype=torch.long)
        weights = torch.zeros(len(samples), length)
        for row, sample in enumerate(samples):
            ids[row, :len(sample)] = torch.tensor(sample.ids)
            weights[row, :len(sample)] = torch.tensor(sample.weights)
        return cls(ids, weights)


def _losses(model, batch):
    """Returns the weighted loss, and the plain mean over the answers."""
    targets, weights = batch.ids[:, 1:], batch.weights[:, 1:]
    counted = weights > 0
    vectors = model(batch.ids[:, :-1])[counted]
    losses = functional.cross_entropy(model.logits(vectors), targets[counted],
                                      reduction="none")
    weights = weights[counted]
    answers = weights >= EARLIER_ANSWER_WEIGHT
    weighted = (losses * weights).sum() / weights.sum()
    return weighted, losses[answers].mean().item()


def _rate(settings, step, elapsed):
    """Returns the learning rate after so many steps and seconds."""
    warm = min(1, step / WARM_UP_STEPS)
    fall = (1 + math.cos(math.pi * min(1, elapsed / settings.seconds))) / 2
    return settings.peak_rate * warm * (
        FINAL_RATE_SHARE + (1 - FINAL_RATE_SHARE) * fall)


def _load(checkpoint):
    model = ChatModel(checkpoint.shape)
    if checkpoint.tensors:
        model.load_state_dict({
            name: torch.from_numpy(tensor.astype("f4"))
            for name, tensor in checkpoint.tensors.items()})
    return model


def _save(model, checkpoint, path):
    tensors = {name: tensor.numpy()
               for name, tensor in model.state_dict().items()}
    replace(checkpoint, tensors=tensors).write(path)


def train(checkpoint, path, settings, report):
    """Trains on from the checkpoint, or from nothing if it has no tensors.

    Saves to the path now and then and at the end. Calls report with a line
    of text about the progress: the step, the running mean of the answers'
    loss, tokens a second (padding included) and the seconds gone by.
    """
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    author = Author(settings.seed)
    model = _load(checkpoint)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98),
                                  weight_decay=0.01)
    start, step, tokens, running_loss = time.monotonic(), 0, 0, None
    while (elapsed := time.monotonic() - start) < settings.seconds:
        for group in optimizer.param_groups:
            group["lr"] = _rate(settings, step, elapsed)
        batch = Batch.of(draw_batch(checkpoint.tokenizer, author, BATCH_SIZE))
        loss, answer_loss = _losses(model, batch)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), MAX_GRADIENT_NORM)
        optimizer.step()
        step += 1
        tokens += batch.ids.numel()
        if running_loss is None:
            running_loss = answer_loss
        running_loss += RUNNING_SHARE * (answer_loss - running_loss)
        if step % REPORT_STEPS == 0:
            elapsed = time.monotonic() - start
            report(f"step {step}: answer loss {running_loss:.4f}, "
                   f"{tokens / elapsed:.0f} tokens/s, {elapsed:.0f} s")
        if step % SAVE_STEPS == 0:
            _save(model, checkpoint, path)
    _save(model, checkpoint, path)
