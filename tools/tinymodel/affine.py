"""Numbers of a few bits, as MLX stores them in its mode "affine".

The 64 numbers of a group, which are neighbours in a row, have a scale and a
bias in 16 bits: value = scale * number + bias. The numbers are packed into
words of 32 bits, the first one into the lowest bits.
"""

import numpy

GROUP_NUMBERS = 64
WORD_BITS = 32


def pack(matrix, bits):
    """Returns the packed numbers, the scales and the biases of a matrix.

    The number of columns must be a multiple of GROUP_NUMBERS.
    """
    rows = len(matrix)
    groups = matrix.astype(numpy.float32).reshape(rows, -1, GROUP_NUMBERS)
    low, high = groups.min(axis=-1), groups.max(axis=-1)
    most = (1 << bits) - 1
    # As they are stored, so that the numbers suit the rounded ones.
    scales = numpy.maximum((high - low) / most, 1e-6).astype("<f2")
    biases = low.astype("<f2")
    numbers = numpy.clip(numpy.rint(
        (groups - biases[..., None].astype(numpy.float32))
        / scales[..., None].astype(numpy.float32)), 0, most)
    numbers = numbers.astype("<u4").reshape(rows, -1, WORD_BITS // bits)
    shifts = numpy.arange(0, WORD_BITS, bits, dtype="<u4")
    words = (numbers << shifts).sum(axis=-1, dtype="<u4")
    return words, scales, biases


def unpack(words, scales, biases, bits):
    """Returns the matrix as 32-bit floats."""
    shifts = numpy.arange(0, WORD_BITS, bits, dtype="<u4")
    numbers = (words[..., None] >> shifts) & ((1 << bits) - 1)
    groups = numbers.reshape(*scales.shape, GROUP_NUMBERS)
    values = (groups.astype(numpy.float32)
              * scales[..., None].astype(numpy.float32)
              + biases[..., None].astype(numpy.float32))
    return values.reshape(len(words), -1)
