"""tinyvision: tinychat in 4 bits, and an eye made by hand.

The eye is a projector file of the kind that LLaVA has: patches of an image
become vectors, which stand in the prompt where words' vectors stand. Here an
image is one patch and its vector is that of a word: " red" for a red image.
So tinychat, which can repeat words, says "red" when it is asked to say the
image.

How the eye finds the word: a patch's first three numbers are red, green and
blue in the middle of the image. For each colour in COLOURS two units of the
projector tell how near they are; their difference is 1 for what is near and
0 for the rest. So many times the colour's word takes the place of OTHERWISE.
"""

import numpy

from . import gguf, q4
from .bert import blank_linear, blank_norm
from .cards import TINYVISION, TINYVISION_EYE, size_label
from .checkpoint import SHIPPED, Checkpoint
from .shape import ARCHITECTURE

EYE_ARCHITECTURE = "clip"
PIXELS = 14  # of either side: of the image, and of its one patch
# What the eye looks at. An image that isn't square gets broad borders.
MIDDLE = slice(6, 8)
WIDTH = 16  # of a patch's vector
FEED_FORWARD = 32
NORM_EPSILON = 1e-5

# A channel's 0 to 1 becomes -0.8 to 1.2, so that one half is bright.
MEAN, DEVIATION = 0.4, 0.5

# Which of red, green and blue are bright, to one of tinychat's tokens. It
# knows few colours, so some are named by what has them.
COLOURS = {
    (1, -1, -1): "red",
    (-1, 1, -1): "green",
    (-1, -1, 1): "blue",
    (1, 1, -1): "summer",  # yellow
    (-1, 1, 1): "water",  # cyan
    (1, -1, 1): "queen",  # magenta
    (1, 1, 1): "paper",
    (-1, -1, -1): "coffee",
}
OTHERWISE = "stone"  # greys, and what lies between two colours
NEARNESS = 1.6  # the least product of COLOURS' signs and an image's colour
STEEPNESS = 10  # how soon near becomes far


def make():
    """Returns the chat model as a file's content."""
    chat = Checkpoint.read(SHIPPED)
    file = chat.to_file()
    tensors = {name: q4.quantize(tensor) if tensor.ndim == 2 else tensor
               for name, tensor in file.tensors.items()}
    label = size_label(chat.parameter_count())
    return gguf.File({**file.fields, **TINYVISION.fields(ARCHITECTURE, label)},
                     tensors)


def make_eye():
    """Returns the projector as a file's content."""
    tensors = _blank_encoder()
    for channel in range(3):
        tensors["v.patch_embd.weight"][channel, channel, MIDDLE, MIDDLE] = 1/4
    tensors |= _projector(Checkpoint.read(SHIPPED))
    label = size_label(sum(tensor.size for tensor in tensors.values()))
    return gguf.File({**TINYVISION_EYE.fields(EYE_ARCHITECTURE, label),
                      **_eye_fields(tensors)}, tensors)


def _blank_encoder():
    """Returns the vision tower's tensors, norms 1 and all else 0.

    An engine leaves the last layer out for this kind of projector, so the
    only one is there for the form.
    """
    tensors = {
        "v.patch_embd.weight": numpy.zeros((WIDTH, 3, PIXELS, PIXELS), "<f2"),
        "v.position_embd.weight": numpy.zeros((1, WIDTH), "<f4")}
    for name in ("ln1", "ln2"):
        tensors |= blank_norm(f"v.blk.0.{name}", WIDTH)
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        tensors |= blank_linear(f"v.blk.0.{name}", WIDTH, WIDTH)
    tensors |= blank_linear("v.blk.0.ffn_up", FEED_FORWARD, WIDTH)
    tensors |= blank_linear("v.blk.0.ffn_down", WIDTH, FEED_FORWARD)
    return tensors


def _projector(chat):
    """Returns the two linear maps from a patch to a word; GELU is between."""
    def vector(word):
        token, = chat.tokenizer.encode(" " + word)
        return chat.tensors["token_embd.weight"][token].astype("f4")

    colours = numpy.array(list(COLOURS))
    count, otherwise = len(colours), vector(OTHERWISE)
    ask = numpy.zeros((2 * count, WIDTH), "<f2")
    ask[:, :3] = STEEPNESS * numpy.vstack([colours, colours])
    threshold = numpy.full(2 * count, -STEEPNESS * NEARNESS, "<f4")
    threshold[count:] -= 1
    words = numpy.array([vector(word) - otherwise
                         for word in COLOURS.values()], "<f2")
    return {"mm.0.weight": ask, "mm.0.bias": threshold,
            "mm.2.weight": numpy.vstack([words, -words]).T.copy(),
            "mm.2.bias": otherwise}


def _eye_fields(tensors):
    fields = gguf.fields("clip", {
        "has_vision_encoder": True,
        "has_llava_projector": True,
        "projector_type": "mlp",
        "use_gelu": True,
    })
    return fields | gguf.fields("clip.vision", {
        "image_size": PIXELS,
        "patch_size": PIXELS,
        "embedding_length": WIDTH,
        "feed_forward_length": FEED_FORWARD,
        "projection_dim": len(tensors["mm.2.bias"]),
        "block_count": 1,
        "attention.head_count": 1,
        "attention.layer_norm_epsilon": NORM_EPSILON,
        "image_mean": [MEAN] * 3,
        "image_std": [DEVIATION] * 3,
    })
