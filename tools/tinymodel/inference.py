"""Answers of a checkpoint in plain NumPy, without any engine.

The most likely token each time, and every token computed anew from the
whole text: slow for an engine, fast enough to try a model of this size.
"""

import numpy

from .shape import NORM_EPSILON, ROPE_BASE
from .tokenizer import END_OF_MESSAGE


def _normalise(values, weight):
    mean_square = numpy.mean(values * values, axis=-1, keepdims=True)
    return values / numpy.sqrt(mean_square + NORM_EPSILON) * weight


def _rotate(vectors):
    """Turns neighbouring pairs by their position: heads, tokens, width."""
    tokens, width = vectors.shape[-2:]
    speeds = ROPE_BASE ** (-numpy.arange(0, width, 2) / width)
    angles = numpy.arange(tokens)[:, None] * speeds
    cosine, sine = numpy.cos(angles), numpy.sin(angles)
    even, odd = vectors[..., 0::2], vectors[..., 1::2]
    turned = numpy.empty_like(vectors)
    turned[..., 0::2] = even * cosine - odd * sine
    turned[..., 1::2] = even * sine + odd * cosine
    return turned


class Network:
    """A checkpoint's network with its parameters as 32-bit floats."""

    def __init__(self, checkpoint):
        self._shape = checkpoint.shape
        self._tensors = {name: tensor.astype(numpy.float32)
                         for name, tensor in checkpoint.tensors.items()}

    def logits(self, ids):
        """Returns each token's logits: an array of tokens by vocabulary."""
        embedding = self._tensors["token_embd.weight"]
        values = embedding[ids]
        for layer in range(self._shape.layers):
            values = values + self._attend(layer, values)
            values = values + self._feed_forward(layer, values)
        values = _normalise(values, self._tensors["output_norm.weight"])
        return values @ embedding.T

    def _weight(self, layer, name):
        return self._tensors[f"blk.{layer}.{name}.weight"]

    def _attend(self, layer, values):
        values = _normalise(values, self._weight(layer, "attn_norm"))
        tokens, shape = len(values), self._shape

        def heads(name):
            projected = values @ self._weight(layer, name).T
            return projected.reshape(tokens, shape.heads,
                                     shape.head_width).swapaxes(0, 1)

        query, key = _rotate(heads("attn_q")), _rotate(heads("attn_k"))
        scores = query @ key.swapaxes(1, 2) / numpy.sqrt(shape.head_width)
        scores += numpy.triu(numpy.full((tokens, tokens), -numpy.inf), 1)
        scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = (scores @ heads("attn_v")).swapaxes(0, 1)
        mixed = mixed.reshape(tokens, shape.width)
        return mixed @ self._weight(layer, "attn_output").T

    def _feed_forward(self, layer, values):
        values = _normalise(values, self._weight(layer, "ffn_norm"))
        gate = values @ self._weight(layer, "ffn_gate").T
        gate = gate / (1 + numpy.exp(-gate))
        widened = gate * (values @ self._weight(layer, "ffn_up").T)
        return widened @ self._weight(layer, "ffn_down").T


def complete(checkpoint, prompt, max_tokens=200):
    """Returns the model's continuation, without the end mark."""
    network, tokenizer = Network(checkpoint), checkpoint.tokenizer
    end = tokenizer.id_of[END_OF_MESSAGE]
    prompt_ids = tokenizer.encode(prompt)
    ids = list(prompt_ids)
    while len(ids) < len(prompt_ids) + max_tokens:
        best = int(network.logits(ids)[-1].argmax())
        if best == end:
            break
        ids.append(best)
    return tokenizer.decode(ids[len(prompt_ids):])
