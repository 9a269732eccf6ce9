"""GGUF, version 3, little-endian: the file format and no more.

A file is a header, metadata fields, tensor descriptions and tensor data,
each tensor padded to 32 bytes. Only what this package needs is supported:
flat arrays, and tensors of 32-bit floats, 16-bit floats or Q4_0 blocks.
"""

import os
import struct
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import numpy

MAGIC = b"GGUF"
VERSION = 3
ALIGNMENT_BYTES = 32


class Kind(IntEnum):
    """A metadata value's type, as the format numbers it."""

    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9


_FORMATS = {Kind.UINT32: "<I", Kind.INT32: "<i", Kind.FLOAT32: "<f",
            Kind.BOOL: "<?"}
_KINDS = {bool: Kind.BOOL, int: Kind.UINT32, float: Kind.FLOAT32,
          str: Kind.STRING}
# 32 numbers of 4 bits, with one scale: value = scale * (nibble - 8). The first
# 16 numbers are the lower halves of the bytes, the others the upper ones.
Q4_0 = numpy.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])
Q4_0_NUMBERS = 32
_TENSOR_KINDS = {0: numpy.dtype("<f4"), 1: numpy.dtype("<f2"), 2: Q4_0}


class FormatError(ValueError):
    """The file is not GGUF, or uses a part of it unknown here."""


@dataclass(frozen=True)
class Field:
    """A metadata value. In an array each item is of the kind."""

    kind: Kind
    value: object
    is_array: bool = False

    @classmethod
    def of(cls, value):
        """Makes a field of the usual kind for a Python value or list.

        Whole numbers become UINT32. A list must have an item to judge by.
        """
        is_array = isinstance(value, list)
        kind = _KINDS[type(value[0] if is_array else value)]
        return cls(kind, value, is_array)


def fields(prefix, values):
    """Makes the fields "prefix.key" of plain values; Fields stay."""
    return {f"{prefix}.{key}":
            value if isinstance(value, Field) else Field.of(value)
            for key, value in values.items()}


@dataclass
class File:
    """A file's content; both dictionaries keep the file's order."""

    fields: dict  # key to Field
    tensors: dict  # name to numpy array: float32, float16 or Q4_0 blocks

    def value(self, key):
        """Returns a field's value. Raises FormatError if it is missing."""
        if key not in self.fields:
            raise FormatError(f"no metadata field {key!r}")
        return self.fields[key].value


def _numbers_of(dtype):
    """Returns how many numbers one item of an array stands for."""
    return Q4_0_NUMBERS if dtype == Q4_0 else 1


def _padding(size):
    return b"\0" * (-size % ALIGNMENT_BYTES)


def _pack(kind, value):
    if kind == Kind.STRING:
        data = value.encode()
        return struct.pack("<Q", len(data)) + data
    return struct.pack(_FORMATS[kind], value)


def _pack_field(key, field):
    data = _pack(Kind.STRING, key)
    if not field.is_array:
        return data + struct.pack("<I", field.kind) + _pack(field.kind,
                                                            field.value)
    data += struct.pack("<IIQ", Kind.ARRAY, field.kind, len(field.value))
    return data + b"".join(_pack(field.kind, item) for item in field.value)


def dump(file):
    """Returns the file's bytes."""
    header = struct.pack("<4sIQQ", MAGIC, VERSION, len(file.tensors),
                         len(file.fields))
    header += b"".join(_pack_field(*item) for item in file.fields.items())
    kind_of = {dtype: kind for kind, dtype in _TENSOR_KINDS.items()}
    data = b""
    for name, tensor in file.tensors.items():
        header += _pack(Kind.STRING, name)
        # The format lists dimensions from the one that varies fastest.
        *slower, fastest = tensor.shape
        fastest *= _numbers_of(tensor.dtype)
        header += struct.pack(f"<I{tensor.ndim}Q", tensor.ndim,
                              fastest, *reversed(slower))
        header += struct.pack("<IQ", kind_of[tensor.dtype], len(data))
        raw = tensor.tobytes()
        data += raw + _padding(len(raw))
    return header + _padding(len(header)) + data


def write(path, file):
    """Writes the file; an older one is replaced only when all is done."""
    path = Path(path)
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(dump(file))
    os.replace(temporary, path)


class _Reader:
    """Takes values from the front of a file's bytes."""

    def __init__(self, data):
        self._data = data
        self.position = 0

    def take(self, size):
        start, self.position = self.position, self.position + size
        if self.position > len(self._data):
            raise FormatError("the file ends too early")
        return self._data[start:self.position]

    def unpack(self, layout):
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def string(self):
        return self.take(self.unpack("<Q")[0]).decode()

    def kind(self):
        number, = self.unpack("<I")
        try:
            return Kind(number)
        except ValueError:
            raise FormatError(f"metadata kind {number} is not known") from None

    def value(self, kind):
        if kind == Kind.STRING:
            return self.string()
        if kind == Kind.ARRAY:
            raise FormatError("arrays of arrays are not known")
        return self.unpack(_FORMATS[kind])[0]

    def field(self):
        kind = self.kind()
        if kind != Kind.ARRAY:
            return Field(kind, self.value(kind))
        kind = self.kind()
        count, = self.unpack("<Q")
        values = [self.value(kind) for _ in range(count)]
        return Field(kind, values, is_array=True)

    def tensor_description(self):
        """Returns a tensor's name, dimensions, dtype and offset in bytes."""
        name = self.string()
        count, = self.unpack("<I")
        dimensions = self.unpack(f"<{count}Q")[::-1]
        kind, offset = self.unpack("<IQ")
        if kind not in _TENSOR_KINDS:
            raise FormatError(f"tensor {name} is of kind {kind}: only 32-bit "
                              "and 16-bit floats and Q4_0 can be read")
        dtype = _TENSOR_KINDS[kind]
        *slower, fastest = dimensions
        return name, (*slower, fastest // _numbers_of(dtype)), dtype, offset


def parse(data):
    """Returns the content of a file's bytes."""
    reader = _Reader(data)
    magic, version, tensor_count, field_count = reader.unpack("<4sIQQ")
    if magic != MAGIC or version != VERSION:
        raise FormatError(f"not a GGUF file of version {VERSION}")
    fields = {}
    for _ in range(field_count):
        key = reader.string()
        fields[key] = reader.field()
    described = [reader.tensor_description() for _ in range(tensor_count)]
    start = reader.position + len(_padding(reader.position))
    tensors = {}
    for name, dimensions, dtype, offset in described:
        reader.position = start + offset
        count = int(numpy.prod(dimensions, dtype=numpy.int64))
        raw = reader.take(count * dtype.itemsize)
        tensors[name] = numpy.frombuffer(raw, dtype).reshape(dimensions)
    return File(fields, tensors)
