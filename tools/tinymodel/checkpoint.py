"""The model as one GGUF file: parameters, merges, template, metadata.

Matrices are kept as 16-bit floats and norms as 32-bit ones, which is what
engines expect of an "F16" file. Training that goes on from a checkpoint
thus starts from rounded parameters; the loss doesn't show it.

Query and key rows stand in the order that llama.cpp's architecture "llama"
wants: rotary positions turn neighbouring pairs (0 1, 2 3, ...). Formats that
turn halves instead (0 with width/2) need those rows permuted, as in `mlx`.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy

from . import gguf
from .cards import TINYCHAT, TRAINED, Card, size_label
from .gguf import Field, Kind
from .shape import ARCHITECTURE, NORM_EPSILON, ROPE_BASE, Shape
from .template import read_template
from .tokenizer import (END_OF_MESSAGE, END_OF_TEXT, PRE_TOKENIZER, Tokenizer)

SHIPPED = TINYCHAT.path


@dataclass
class Checkpoint:
    """A model in memory; tensors by GGUF name, as NumPy arrays."""

    shape: Shape
    tokenizer: Tokenizer
    tensors: dict
    card: Card = TINYCHAT

    @classmethod
    def read(cls, path):
        """Reads a GGUF file. Raises gguf.FormatError if it is not ours."""
        file = gguf.parse(Path(path).read_bytes())
        tokenizer = Tokenizer.from_lines(file.value("tokenizer.ggml.merges"))
        if tokenizer.vocabulary != file.value("tokenizer.ggml.tokens"):
            raise gguf.FormatError(f"{path}: the tokens don't follow from "
                                   "the merges: another recipe's model")
        shape = Shape(
            vocabulary=len(tokenizer.vocabulary),
            layers=file.value(f"{ARCHITECTURE}.block_count"),
            width=file.value(f"{ARCHITECTURE}.embedding_length"),
            heads=file.value(f"{ARCHITECTURE}.attention.head_count"),
            feed_forward=file.value(f"{ARCHITECTURE}.feed_forward_length"),
            context_length=file.value(f"{ARCHITECTURE}.context_length"))
        found = {name: tensor.shape for name, tensor in file.tensors.items()}
        if found != shape.tensors():
            raise gguf.FormatError(f"{path}: its tensors are not those of "
                                   "a model of its dimensions")
        card = TRAINED.get(file.value("general.basename"), TINYCHAT)
        return cls(shape, tokenizer, file.tensors, card)

    def write(self, path):
        """Writes the file; an older one is replaced only when all is done."""
        gguf.write(path, self.to_file())

    def to_bytes(self):
        return gguf.dump(self.to_file())

    def to_file(self):
        tensors = {}
        for name, dimensions in self.shape.tensors().items():
            dtype = "<f4" if len(dimensions) == 1 else "<f2"
            tensors[name] = numpy.asarray(self.tensors[name], dtype)
        return gguf.File(self._fields(), tensors)

    def parameter_count(self):
        return sum(tensor.size for tensor in self.tensors.values())

    def _fields(self):
        label = size_label(self.parameter_count())
        return {**self.card.fields(ARCHITECTURE, label),
                **network_fields(self.shape),
                **tokenizer_fields(self.tokenizer)}


def network_fields(shape):
    """Returns the metadata about a network of the shape."""
    return gguf.fields(ARCHITECTURE, {
        "context_length": shape.context_length,
        "embedding_length": shape.width,
        "block_count": shape.layers,
        "feed_forward_length": shape.feed_forward,
        "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.heads,
        "attention.layer_norm_rms_epsilon": NORM_EPSILON,
        "rope.dimension_count": shape.head_width,
        "rope.freq_base": ROPE_BASE,
        "vocab_size": shape.vocabulary,
    })


def tokenizer_fields(tokenizer):
    """Returns the metadata about the tokens and the chat template."""
    end_of_text = tokenizer.id_of[END_OF_TEXT]
    fields = gguf.fields("tokenizer.ggml", {
        "model": "gpt2",
        "pre": PRE_TOKENIZER,
        "tokens": tokenizer.vocabulary,
        "token_type": Field(Kind.INT32, tokenizer.token_types(),
                            is_array=True),
        "merges": tokenizer.to_lines(),
        "eos_token_id": tokenizer.id_of[END_OF_MESSAGE],
        "padding_token_id": end_of_text,
        "bos_token_id": end_of_text,
        # The template writes every mark the model was trained with.
        "add_bos_token": False,
    })
    fields["tokenizer.chat_template"] = Field.of(read_template())
    return fields
