"""Random parameters that are the same everywhere and always.

Evenly distributed, since those numbers come from the generator by exact
arithmetic alone; normal ones depend on the machine's logarithm.
"""

import math

import numpy


class Noise:
    """A stream of random parameters; each call takes the next ones."""

    def __init__(self, seed):
        # The old generator's numbers are promised never to change.
        self._generator = numpy.random.RandomState(seed)

    def draw(self, *dimensions, deviation, dtype="<f2"):
        """Returns an array with mean 0 and this standard deviation."""
        limit = deviation * math.sqrt(3)
        numbers = self._generator.random_sample(dimensions)
        return ((2 * numbers - 1) * limit).astype(dtype)

    def signs(self, rows, width):
        """Returns rows of as many 1 as -1, in random order."""
        order = self._generator.random_sample((rows, width)).argsort(axis=1)
        return numpy.where(order < width // 2, 1.0, -1.0)
