"""What the embedding model and the reranker share: GGUF's "bert".

Every token sees every other. A layer normalises after it has added:
attention, then a feed-forward part with GELU, all with biases.
"""

from dataclasses import dataclass

import numpy

from . import gguf
from .wordpiece import VOCABULARY

ARCHITECTURE = "bert"
NORM_EPSILON = 1e-12
POOLING_MEAN, POOLING_RANK = 1, 4


@dataclass(frozen=True)
class BertShape:
    """The dimensions; all widths count numbers in a vector."""

    layers: int
    width: int
    heads: int
    feed_forward: int
    context_length: int = 512

    def blank(self):
        """Returns tensors that change nothing: norms are 1, the rest 0.

        Tables of positions and token types have 32 bits, as vectors have.
        """
        width, wide = self.width, self.feed_forward
        tensors = {
            "token_embd.weight": numpy.zeros((len(VOCABULARY), width), "<f2"),
            "position_embd.weight": numpy.zeros(
                (self.context_length, width), "<f4"),
            "token_types.weight": numpy.zeros((2, width), "<f4"),
            **blank_norm("token_embd_norm", width)}
        for layer in range(self.layers):
            for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
                tensors |= blank_linear(f"blk.{layer}.{name}", width, width)
            tensors |= blank_norm(f"blk.{layer}.attn_output_norm", width)
            tensors |= blank_linear(f"blk.{layer}.ffn_up", wide, width)
            tensors |= blank_linear(f"blk.{layer}.ffn_down", width, wide)
            tensors |= blank_norm(f"blk.{layer}.layer_output_norm", width)
        return tensors

    def fields(self, pooling):
        """Returns the metadata about the network."""
        return gguf.fields(ARCHITECTURE, {
            "context_length": self.context_length,
            "embedding_length": self.width,
            "block_count": self.layers,
            "feed_forward_length": self.feed_forward,
            "attention.head_count": self.heads,
            "attention.layer_norm_epsilon": NORM_EPSILON,
            "attention.causal": False,
            "pooling_type": pooling,
            "vocab_size": len(VOCABULARY),
        })


def blank_linear(name, outputs, inputs):
    """Returns the two tensors of a linear map, all 0."""
    return {f"{name}.weight": numpy.zeros((outputs, inputs), "<f2"),
            f"{name}.bias": numpy.zeros(outputs, "<f4")}


def blank_norm(name, width):
    """Returns the two tensors of a norm that only normalises."""
    return {f"{name}.weight": numpy.ones(width, "<f4"),
            f"{name}.bias": numpy.zeros(width, "<f4")}
