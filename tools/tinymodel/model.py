"""The network in PyTorch.

Modules are named so that the names in a state dict are the GGUF names of
`shape.Shape.tensors`. Positions are rotated in neighbouring (interleaved)
pairs, as llama.cpp does for the architecture "llama".
"""

import math

import torch
from torch import nn
from torch.nn import functional

from .samples import MAX_TOKENS
from .shape import NORM_EPSILON, ROPE_BASE

INITIAL_DEVIATION = 0.02


class Norm(nn.Module):
    """Scales each vector to a mean square of 1, then by a weight."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, values):
        mean_square = values.pow(2).mean(-1, keepdim=True)
        return values * torch.rsqrt(mean_square + NORM_EPSILON) * self.weight


class Block(nn.Module):
    """One layer: attention, then the gated feed-forward part."""

    def __init__(self, shape):
        super().__init__()
        width, feed_forward = shape.width, shape.feed_forward
        self.heads, self.head_width = shape.heads, shape.head_width
        self.attn_norm = Norm(width)
        self.ffn_norm = Norm(width)
        self.attn_q = nn.Linear(width, width, bias=False)
        self.attn_k = nn.Linear(width, width, bias=False)
        self.attn_v = nn.Linear(width, width, bias=False)
        self.attn_output = nn.Linear(width, width, bias=False)
        self.ffn_gate = nn.Linear(width, feed_forward, bias=False)
        self.ffn_up = nn.Linear(width, feed_forward, bias=False)
        self.ffn_down = nn.Linear(feed_forward, width, bias=False)

    def forward(self, values, rotate, mask):
        values = values + self._attend(self.attn_norm(values), rotate, mask)
        normed = self.ffn_norm(values)
        gated = functional.silu(self.ffn_gate(normed)) * self.ffn_up(normed)
        return values + self.ffn_down(gated)

    def _attend(self, values, rotate, mask):
        batch, tokens, width = values.shape

        def heads(projected):
            return projected.view(batch, tokens, self.heads,
                                  self.head_width).transpose(1, 2)

        query = rotate(heads(self.attn_q(values)))
        key = rotate(heads(self.attn_k(values)))
        scores = query @ key.transpose(-1, -2) / math.sqrt(self.head_width)
        mixed = (scores + mask).softmax(-1) @ heads(self.attn_v(values))
        mixed = mixed.transpose(1, 2).reshape(batch, tokens, width)
        return self.attn_output(mixed)


class ChatModel(nn.Module):
    """The whole network, for texts of up to samples.MAX_TOKENS tokens."""

    def __init__(self, shape):
        super().__init__()
        self.token_embd = nn.Embedding(shape.vocabulary, shape.width)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = Norm(shape.width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, INITIAL_DEVIATION)
        # Constants, not parameters: no part of the state dict.
        speeds = ROPE_BASE ** (
            -torch.arange(0, shape.head_width, 2).float() / shape.head_width)
        angles = torch.arange(MAX_TOKENS).float()[:, None] * speeds
        mask = torch.full((MAX_TOKENS, MAX_TOKENS), -1e9).triu(1)
        self.register_buffer("_cosine", angles.cos(), persistent=False)
        self.register_buffer("_sine", angles.sin(), persistent=False)
        self.register_buffer("_mask", mask, persistent=False)

    def forward(self, ids):
        """Returns the last layer's vectors: batch, tokens, width."""
        tokens = ids.shape[1]
        mask = self._mask[:tokens, :tokens]
        values = self.token_embd(ids)
        for block in self.blk:
            values = block(values, self._rotate, mask)
        return self.output_norm(values)

    def logits(self, vectors):
        """Returns vectors' logits, by the embedding they share."""
        return vectors @ self.token_embd.weight.t()

    def _rotate(self, vectors):
        tokens = vectors.shape[-2]
        cosine, sine = self._cosine[:tokens], self._sine[:tokens]
        even, odd = vectors[..., 0::2], vectors[..., 1::2]
        turned = (even * cosine - odd * sine, even * sine + odd * cosine)
        return torch.stack(turned, -1).flatten(-2)
