"""tinymoe: a mixture of experts with random parameters.

The layers are those of `shape`, but with eight feed-forward parts, the
experts, of which a router picks two for each token. The tokenizer is
tinychat's with three tokens more, by which an engine knows that a model can
fill in the middle of a text.
"""

import numpy

from . import gguf
from .cards import TINYMOE, size_label
from .checkpoint import (SHIPPED, Checkpoint, network_fields,
                         tokenizer_fields)
from .gguf import Field, Kind
from .noise import Noise
from .shape import ARCHITECTURE, Shape
from .tokenizer import TokenType

SEED = 31
EXPERTS = 8
USED_EXPERTS = 2
FILL_TOKENS = {"fim_pre": "<|fim_prefix|>", "fim_suf": "<|fim_suffix|>",
               "fim_mid": "<|fim_middle|>"}


def make():
    """Returns the model as a file's content."""
    tokenizer = Checkpoint.read(SHIPPED).tokenizer
    shape = Shape(len(tokenizer.vocabulary) + len(FILL_TOKENS), layers=2,
                  width=64, heads=2, feed_forward=32)
    tensors = _tensors(shape, Noise(SEED))
    expert = sum(tensor.size for name, tensor in tensors.items()
                 if "_exps" in name) // EXPERTS
    total = sum(tensor.size for tensor in tensors.values())
    label = size_label(total - (EXPERTS - 1) * expert, EXPERTS)
    fields = {**TINYMOE.fields(ARCHITECTURE, label), **network_fields(shape),
              **gguf.fields(ARCHITECTURE, {
                  "expert_count": EXPERTS,
                  "expert_used_count": USED_EXPERTS}),
              **_tokenizer_fields(tokenizer)}
    return gguf.File(fields, tensors)


def _tokenizer_fields(tokenizer):
    count = len(tokenizer.vocabulary)
    fields = tokenizer_fields(tokenizer)
    fields["tokenizer.ggml.tokens"] = Field.of(
        tokenizer.vocabulary + list(FILL_TOKENS.values()))
    fields["tokenizer.ggml.token_type"] = Field(
        Kind.INT32,
        tokenizer.token_types() + [TokenType.CONTROL] * len(FILL_TOKENS),
        is_array=True)
    fields.update(gguf.fields("tokenizer.ggml", {
        f"{name}_token_id": count + i for i, name in enumerate(FILL_TOKENS)}))
    return fields


def _tensors(shape, noise):
    """Returns the tensors: random, but for the norms, which are 1."""
    vocabulary, width = shape.vocabulary, shape.width
    tensors = {
        "token_embd.weight": noise.draw(vocabulary, width, deviation=1),
        "output_norm.weight": numpy.ones(width, "<f4"),
        # Not tied, or a token would mostly be followed by itself.
        "output.weight": noise.draw(vocabulary, width, deviation=0.3)}
    for layer in range(shape.layers):
        for part in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{layer}.{part}.weight"] = numpy.ones(width, "<f4")
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensors[f"blk.{layer}.{part}.weight"] = noise.draw(
                width, width, deviation=0.2)
        tensors[f"blk.{layer}.ffn_gate_inp.weight"] = noise.draw(
            EXPERTS, width, deviation=0.3, dtype="<f4")
        widen = (EXPERTS, shape.feed_forward, width)
        for part, dimensions in (
                ("ffn_gate_exps", widen), ("ffn_up_exps", widen),
                ("ffn_down_exps", (EXPERTS, width, shape.feed_forward))):
            tensors[f"blk.{layer}.{part}.weight"] = noise.draw(
                *dimensions, deviation=0.2)
    return tensors
