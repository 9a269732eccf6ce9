"""tinyembed: an embedding model with random parameters.

Its layers change the random vectors of the words but little and the mean is
taken, so texts are alike as far as they share words. The order of the words
hardly shows.
"""

from . import gguf
from .bert import ARCHITECTURE, POOLING_MEAN, BertShape
from .cards import TINYEMBED, size_label
from .noise import Noise
from .wordpiece import FIRST, ID_OF, tokenizer_fields

SEED = 32
SHAPE = BertShape(layers=2, width=64, heads=2, feed_forward=128)


def make():
    """Returns the model as a file's content."""
    noise, tensors = Noise(SEED), SHAPE.blank()
    for name, tensor in tensors.items():
        if tensor.ndim == 2:
            deviation = {"token_embd.weight": 1,
                         "position_embd.weight": 0.2,
                         "token_types.weight": 0}.get(name, 0.06)
            tensor[:] = noise.draw(*tensor.shape, deviation=deviation)
    # What stands at the head of each text would make all texts alike, were
    # it more than nothing.
    tensors["token_embd.weight"][ID_OF[FIRST]] = 0
    tensors["position_embd.weight"][0] = 0
    label = size_label(sum(tensor.size for tensor in tensors.values()))
    fields = {**TINYEMBED.fields(ARCHITECTURE, label),
              **SHAPE.fields(POOLING_MEAN), **tokenizer_fields()}
    return gguf.File(fields, tensors)
