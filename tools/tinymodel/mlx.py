"""The trained model as a folder for mlx_lm and other programs of its kind.

It has the names, files and settings that Hugging Face uses for the
architecture "llama", in 16-bit floats, and the marks by which an MLX folder
is told from others.

What is there for a reason that doesn't show:

- Positions turn halves of a head (0 with width/2) instead of neighbouring
  pairs, so the rows of queries and keys are put in that order.
- The tokens are split by Qwen's expression, which is what llama.cpp calls
  PRE_TOKENIZER, and nothing is normalised, since llama.cpp doesn't either.
- The think and tool tags are added tokens, but no special ones, or they
  would vanish from the text.
- mlx_lm guesses from a template how calls are written. This one doesn't
  have the word it looks for, so `tool_parser_type` says it.
"""

import json
from dataclasses import asdict
from pathlib import Path

import numpy

from . import affine, safetensors
from .checkpoint import Checkpoint
from .gguf import FormatError
from .shape import ARCHITECTURE, NORM_EPSILON, ROPE_BASE, Shape
from .template import read_template
from .tokenizer import (END_OF_MESSAGE, END_OF_TEXT, SPECIAL_TOKENS,
                        Tokenizer, TokenType)

SHIPPED = (Path(__file__).parents[2]
           / "testdata/mlx/lmcaddy/tinychat-mlx")
SHIPPED_4BIT = SHIPPED.with_name("tinychat-mlx-4bit")

WEIGHTS = "model.safetensors"
_PIECE = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
_NAMES = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_PARTS = ("weight", "scales", "biases")  # of a packed matrix
_TURNED = ("attn_q", "attn_k")


def _name(gguf_name):
    """Returns a tensor's name in Hugging Face's models."""
    *layer, name, ending = gguf_name.split(".")
    prefix = f"model.layers.{layer[1]}." if layer else ""
    return f"{prefix}{_NAMES[name]}.{ending}"


def _is_turned(gguf_name):
    return gguf_name.split(".")[-2] in _TURNED


def _regroup(tensor, heads, groups):
    """Swaps two ways of numbering the rows of a head.

    The rows of each head are taken as a table of so many rows, and numbered
    by column.
    """
    split = tensor.reshape(heads, groups, -1, tensor.shape[-1])
    return split.swapaxes(1, 2).reshape(tensor.shape)


def _to_halves(tensor, shape):
    return _regroup(tensor, shape.heads, shape.head_width // 2)


def _to_pairs(tensor, shape):
    return _regroup(tensor, shape.heads, 2)


def _tensors(checkpoint, bits):
    """Returns the tensors by their new names, sorted.

    With bits, the matrices are stored as numbers of so many bits.
    """
    tensors = {}
    for name, tensor in checkpoint.tensors.items():
        if _is_turned(name):
            tensor = _to_halves(tensor, checkpoint.shape)
        if bits and tensor.ndim == 2:
            module = _name(name).removesuffix("weight")
            for part, packed in zip(_PARTS, affine.pack(tensor, bits)):
                tensors[module + part] = packed
        else:
            tensors[_name(name)] = numpy.asarray(tensor, "<f2")
    return dict(sorted(tensors.items()))


def _config(checkpoint, bits):
    shape, id_of = checkpoint.shape, checkpoint.tokenizer.id_of
    quantization = {"group_size": affine.GROUP_NUMBERS, "bits": bits,
                    "mode": "affine"}
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "bos_token_id": id_of[END_OF_TEXT],
        "eos_token_id": id_of[END_OF_MESSAGE],
        "head_dim": shape.head_width,
        "hidden_act": "silu",
        "hidden_size": shape.width,
        "intermediate_size": shape.feed_forward,
        "max_position_embeddings": shape.context_length,
        "mlp_bias": False,
        "model_type": ARCHITECTURE,
        "num_attention_heads": shape.heads,
        "num_hidden_layers": shape.layers,
        "num_key_value_heads": shape.heads,
        "pad_token_id": id_of[END_OF_TEXT],
        "rms_norm_eps": NORM_EPSILON,
        "rope_theta": ROPE_BASE,
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
        "vocab_size": shape.vocabulary,
    } | ({"quantization": quantization,
          "quantization_config": quantization} if bits else {})


def _index(checkpoint, tensors):
    return {
        "metadata": {
            "total_size": sum(t.nbytes for t in tensors.values()),
            "total_parameters": checkpoint.parameter_count(),
        },
        "weight_map": {name: WEIGHTS for name in tensors},
    }


def _added_tokens(tokenizer):
    return [{"id": tokenizer.id_of[token], "content": token,
             "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": kind == TokenType.CONTROL}
            for token, kind in SPECIAL_TOKENS.items()]


def _tokenizer(tokenizer):
    byte_level = {"type": "ByteLevel", "add_prefix_space": False,
                  "trim_offsets": False, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(tokenizer),
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": _PIECE},
             "behavior": "Isolated", "invert": False},
            byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number
                      for token, number in tokenizer.id_of.items()
                      if token not in SPECIAL_TOKENS},
            "merges": tokenizer.to_lines(),
        },
    }


def _tokenizer_config(checkpoint):
    tokenizer = checkpoint.tokenizer
    return {
        "add_bos_token": False,
        "add_prefix_space": False,
        "added_tokens_decoder": {str(token.pop("id")): token
                                 for token in _added_tokens(tokenizer)},
        "bos_token": END_OF_TEXT,
        "chat_template": read_template(),
        "clean_up_tokenization_spaces": False,
        "eos_token": END_OF_MESSAGE,
        "errors": "replace",
        "model_max_length": checkpoint.shape.context_length,
        "pad_token": END_OF_TEXT,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "tool_parser_type": "json_tools",
        "unk_token": None,
    }


def _generation_config(tokenizer):
    return {
        "bos_token_id": tokenizer.id_of[END_OF_TEXT],
        "eos_token_id": [tokenizer.id_of[END_OF_MESSAGE],
                         tokenizer.id_of[END_OF_TEXT]],
        "pad_token_id": tokenizer.id_of[END_OF_TEXT],
    }


def dump(checkpoint, bits=None):
    """Returns the content of each file of the folder, by name.

    Matrices are 16-bit floats, or numbers of so many bits.
    """
    tensors = _tensors(checkpoint, bits)
    texts = {
        "config.json": _config(checkpoint, bits),
        WEIGHTS + ".index.json": _index(checkpoint, tensors),
        "tokenizer.json": _tokenizer(checkpoint.tokenizer),
        "tokenizer_config.json": _tokenizer_config(checkpoint),
        "generation_config.json": _generation_config(checkpoint.tokenizer),
    }
    files = {name: (json.dumps(text, indent=2, ensure_ascii=False)
                    + "\n").encode() for name, text in texts.items()}
    files[WEIGHTS] = safetensors.dump(tensors, {"format": "mlx"})
    return files


def write(folder, checkpoint, bits=None):
    """Writes the folder, over an older one."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in dump(checkpoint, bits).items():
        (folder / name).write_bytes(content)


def read(folder):
    """Reads a folder. Raises FormatError if it isn't one of this recipe."""
    folder = Path(folder)

    def load(name):
        return json.loads((folder / name).read_text(encoding="utf-8"))

    config = load("config.json")
    tokenizer = Tokenizer.from_lines(load("tokenizer.json")["model"]["merges"])
    shape = Shape(
        vocabulary=config["vocab_size"],
        layers=config["num_hidden_layers"],
        width=config["hidden_size"],
        heads=config["num_attention_heads"],
        feed_forward=config["intermediate_size"],
        context_length=config["max_position_embeddings"])
    found, _ = safetensors.parse((folder / WEIGHTS).read_bytes())
    bits = config.get("quantization", {}).get("bits")
    tensors = {}
    for name, dimensions in shape.tensors().items():
        tensor = found.pop(_name(name), None)
        if tensor is not None and tensor.dtype == numpy.uint32:
            module = _name(name).removesuffix("weight")
            tensor = affine.unpack(tensor, found.pop(module + "scales"),
                                   found.pop(module + "biases"), bits)
        if tensor is None or tensor.shape != dimensions:
            raise FormatError(f"{folder}: its tensors are not those of "
                              f"{asdict(shape)}")
        tensors[name] = _to_pairs(tensor, shape) if _is_turned(name) \
            else tensor
    return Checkpoint(shape, tokenizer, tensors)
