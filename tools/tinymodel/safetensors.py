"""Safetensors: the file format and no more.

A file is the length of a header in 8 bytes, little-endian, the header as
JSON, and the tensors' data. Only what this package needs is supported:
16-bit floats, and 32-bit whole numbers, in which MLX packs smaller ones.
"""

import json
import struct

import numpy

from .gguf import FormatError

ALIGNMENT_BYTES = 8  # of the data's start; the header is padded with spaces
METADATA = "__metadata__"
_KINDS = {"F16": numpy.dtype("<f2"), "U32": numpy.dtype("<u4")}


def dump(tensors, metadata):
    """Returns the bytes of a file with the tensors, by name, in order."""
    kind_of = {dtype: kind for kind, dtype in _KINDS.items()}
    header, data = {METADATA: metadata}, b""
    for name, tensor in tensors.items():
        raw = tensor.tobytes()
        header[name] = {"dtype": kind_of[tensor.dtype],
                        "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT_BYTES)
    return struct.pack("<Q", len(text)) + text + data


def parse(data):
    """Returns the tensors and the metadata of a file's bytes."""
    length, = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        raise FormatError("the file ends too early")
    header = json.loads(data[8:8 + length])
    metadata = header.pop(METADATA, {})
    tensors = {}
    for name, described in header.items():
        if described["dtype"] not in _KINDS:
            raise FormatError(f"tensor {name} is of kind "
                              f"{described['dtype']}: only "
                              f"{' and '.join(_KINDS)} can be read")
        start, end = (8 + length + at for at in described["data_offsets"])
        if end > len(data):
            raise FormatError("the file ends too early")
        tensor = numpy.frombuffer(data[start:end], _KINDS[described["dtype"]])
        tensors[name] = tensor.reshape(described["shape"])
    return tensors, metadata
