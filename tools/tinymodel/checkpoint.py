"""The model as one GGUF file: parameters, merges, template, metadata.

Matrices are kept as 16-bit floats and norms as 32-bit ones, which is what
engines expect of an "F16" file. Training that goes on from a checkpoint
thus starts from rounded parameters; the loss doesn't show it.

Query and key rows stand in the order that llama.cpp's architecture "llama"
wants: rotary positions turn neighbouring pairs (0 1, 2 3, ...). Formats that
turn halves instead (0 with width/2) need those rows permuted.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy

from . import gguf
from .gguf import Field, Kind
from .shape import ARCHITECTURE, NORM_EPSILON, ROPE_BASE, Shape
from .template import read_template
from .tokenizer import (END_OF_MESSAGE, END_OF_TEXT, PRE_TOKENIZER, Tokenizer)

SHIPPED = (Path(__file__).parents[2]
           / "testdata/models/lmcaddy/tinychat/tinychat-f16.gguf")

MOSTLY_F16 = 1  # general.file_type
DESCRIPTION = (
    "A small chat model for tests: greets, recalls a name, knows capitals, "
    "counts, repeats and calls tools. Trained on generated conversations.")


@dataclass
class Checkpoint:
    """A model in memory; tensors by GGUF name, as NumPy arrays."""

    shape: Shape
    tokenizer: Tokenizer
    tensors: dict

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
        return cls(shape, tokenizer, file.tensors)

    def write(self, path):
        """Writes the file; an older one is replaced only when all is done."""
        path = Path(path)
        temporary = path.with_name(path.name + ".part")
        temporary.write_bytes(self.to_bytes())
        os.replace(temporary, path)

    def to_bytes(self):
        tensors = {}
        for name, dimensions in self.shape.tensors().items():
            dtype = "<f4" if len(dimensions) == 1 else "<f2"
            tensors[name] = numpy.asarray(self.tensors[name], dtype)
        return gguf.dump(gguf.File(self._fields(), tensors))

    def parameter_count(self):
        return sum(tensor.size for tensor in self.tensors.values())

    def _fields(self):
        return {**self._general_fields(), **self._network_fields(),
                **self._tokenizer_fields()}

    def _general_fields(self):
        texts = {
            "architecture": ARCHITECTURE,
            "name": "Tinychat",
            "type": "model",
            "size_label": f"{self.parameter_count() / 1e6:.1f}M",
            "basename": "tinychat",
            "author": "lmcaddy",
            "description": DESCRIPTION,
            "url": "https://github.com/lmcaddy/lmcaddy",
        }
        fields = {f"general.{key}": Field(Kind.STRING, text)
                  for key, text in texts.items()}
        fields["general.languages"] = Field(Kind.STRING, ["en"], is_array=True)
        fields["general.file_type"] = Field(Kind.UINT32, MOSTLY_F16)
        return fields

    def _network_fields(self):
        shape = self.shape
        numbers = {
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
        }
        return {f"{ARCHITECTURE}.{key}": Field(
                    Kind.FLOAT32 if isinstance(number, float) else Kind.UINT32,
                    number)
                for key, number in numbers.items()}

    def _tokenizer_fields(self):
        tokenizer = self.tokenizer
        end_of_message = tokenizer.id_of[END_OF_MESSAGE]
        end_of_text = tokenizer.id_of[END_OF_TEXT]
        fields = {
            "model": Field(Kind.STRING, "gpt2"),
            "pre": Field(Kind.STRING, PRE_TOKENIZER),
            "tokens": Field(Kind.STRING, tokenizer.vocabulary, is_array=True),
            "token_type": Field(Kind.INT32, tokenizer.token_types(),
                                is_array=True),
            "merges": Field(Kind.STRING, tokenizer.to_lines(), is_array=True),
            "eos_token_id": Field(Kind.UINT32, end_of_message),
            "padding_token_id": Field(Kind.UINT32, end_of_text),
            "bos_token_id": Field(Kind.UINT32, end_of_text),
            # The template writes every mark the model was trained with.
            "add_bos_token": Field(Kind.BOOL, False),
        }
        fields = {f"tokenizer.ggml.{key}": field
                  for key, field in fields.items()}
        fields["tokenizer.chat_template"] = Field(Kind.STRING,
                                                  read_template())
        return fields
