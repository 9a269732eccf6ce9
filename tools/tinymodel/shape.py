"""The network's dimensions, and the tensors they ask for.

The architecture is what GGUF calls "llama": RMS norm before attention and
before the feed-forward part, SwiGLU, rotary positions, no biases. The token
embedding also turns the last layer into logits (tied), so no output matrix
is stored. Tensors bear their GGUF names everywhere in this package.
"""

from dataclasses import dataclass

ARCHITECTURE = "llama"
NORM_EPSILON = 1e-5
ROPE_BASE = 10000.0


@dataclass(frozen=True)
class Shape:
    """The dimensions; all widths count numbers in a vector."""

    vocabulary: int
    layers: int = 4
    width: int = 192
    heads: int = 6
    feed_forward: int = 512
    # What the file promises, in tokens. Training sees samples.MAX_TOKENS at
    # most and answers are poor beyond, but tests need room for long prompts.
    context_length: int = 8192

    @property
    def head_width(self):
        return self.width // self.heads

    def tensors(self):
        """Returns each tensor's dimensions by its name, in file order."""
        square = (self.width, self.width)
        widen = (self.feed_forward, self.width)
        tensors = {"token_embd.weight": (self.vocabulary, self.width),
                   "output_norm.weight": (self.width,)}
        for layer in range(self.layers):
            for name, dimensions in (
                    ("attn_norm", (self.width,)),
                    ("ffn_norm", (self.width,)),
                    ("attn_q", square),
                    ("attn_k", square),
                    ("attn_v", square),
                    ("attn_output", square),
                    ("ffn_gate", widen),
                    ("ffn_up", widen),
                    ("ffn_down", widen[::-1])):
                tensors[f"blk.{layer}.{name}.weight"] = dimensions
        return tensors


def draft_shape(vocabulary):
    """Returns the dimensions of the model that drafts for tinychat.

    One layer can't copy what was said, only go on with what is usual: some
    of its guesses are right and some are wrong, which is what tests need.
    """
    return Shape(vocabulary, layers=1, width=96, heads=3, feed_forward=256)
