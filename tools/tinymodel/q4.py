"""Numbers of 4 bits: what GGUF calls Q4_0."""

import numpy

from .gguf import Q4_0, Q4_0_NUMBERS

_HALF = Q4_0_NUMBERS // 2
_OFFSET = 8  # what a nibble stores for zero


def quantize(tensor):
    """Returns a tensor's blocks; its last dimension must be whole blocks.

    A block's scale is such that the number farthest from zero becomes the
    lowest nibble, which is exact.
    """
    numbers = numpy.asarray(tensor, "<f4")
    numbers = numbers.reshape(*numbers.shape[:-1], -1, Q4_0_NUMBERS)
    farthest = numpy.take_along_axis(
        numbers, numpy.abs(numbers).argmax(-1)[..., None], -1)
    scale = farthest / -_OFFSET
    inverse = numpy.divide(1, scale, where=scale != 0,
                           out=numpy.zeros_like(scale))
    nibbles = numpy.floor(numbers * inverse + numpy.float32(_OFFSET + 0.5))
    nibbles = numpy.minimum(nibbles, 15).astype("u1")
    blocks = numpy.empty(numbers.shape[:-1], Q4_0)
    blocks["scale"] = scale[..., 0]
    blocks["nibbles"] = nibbles[..., :_HALF] | nibbles[..., _HALF:] << 4
    return blocks


def dequantize(blocks):
    """Returns the 32-bit numbers that blocks stand for."""
    nibbles = numpy.concatenate([blocks["nibbles"] & 15,
                                 blocks["nibbles"] >> 4], -1)
    numbers = blocks["scale"][..., None].astype("<f4") * (
        nibbles.astype("<f4") - _OFFSET)
    return numbers.reshape(*blocks.shape[:-1], -1)
