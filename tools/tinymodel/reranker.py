"""tinyrerank: a reranker made by hand, which counts shared words.

An engine asks it about "[CLS] query [SEP] document [SEP]". How it finds the
words that stand there twice:

- A vector has parts. WORD is a code of the token, POSITION one of its place,
  WEIGHT says whether the token is a word that matters.
- In the first layer each token looks for tokens of its own code. PLACES
  becomes the mean of their positions: its own, unless the word stands
  elsewhere too. The feed-forward part puts the difference of POSITION and
  PLACES into SHARED, for words that matter.
- In the second layer each token takes the mean of SHARED over the whole text
  into TOTAL. The head reads that of [CLS] and makes it a score: about -10
  where nothing is shared, up to 10. What is shared counts the less the
  longer the document is.

A word that only the document repeats counts, too. All codes are of as many 1
as -1, and SHARED and TOTAL are kept with either sign, so that no mean is ever
taken off by the norms, which then only scale.
"""

import math

import numpy

from . import gguf
from .bert import ARCHITECTURE, POOLING_RANK, BertShape, blank_linear
from .cards import TINYRERANK, size_label
from .english import PLAIN_WORDS
from .noise import Noise
from .wordpiece import ID_OF, VOCABULARY, WORD_START, tokenizer_fields

SEED = 33
CODE, PLACE = 42, 24  # the widths of words' and positions' codes
WORD = slice(0, CODE)
WEIGHT = slice(CODE, CODE + 2)
POSITION = slice(CODE + 2, CODE + 2 + PLACE)
PLACES = slice(CODE + 2 + PLACE, CODE + 2 + 2 * PLACE)
SHARED = slice(CODE + 2 + 2 * PLACE, CODE + 4 + 2 * PLACE)
TOTAL = slice(CODE + 4 + 2 * PLACE, CODE + 6 + 2 * PLACE)
SHAPE = BertShape(layers=2, width=TOTAL.stop, heads=1, feed_forward=2 * PLACE)

SIGNS = numpy.array([1, -1])
ATTENTION = 16  # so strong that a token sees none but its like
DIFFERENCE = 20  # what a difference of one becomes in the feed-forward part
BARRIER = 30  # what keeps that below zero for words that don't matter
PAIR = 0.008  # from there into SHARED: about 2 for a word that stands twice
STEEPNESS, SPAN, LOWEST = 1.5, 20, -10  # of the score


def make():
    """Returns the model as a file's content."""
    tensors = SHAPE.blank()
    _fill_tables(tensors)
    _fill_first_layer(tensors)
    _fill_second_layer(tensors)
    tensors |= _head()
    label = size_label(sum(tensor.size for tensor in tensors.values()))
    fields = {**TINYRERANK.fields(ARCHITECTURE, label),
              **SHAPE.fields(POOLING_RANK), **tokenizer_fields()}
    return gguf.File(fields, tensors)


def _fill_tables(tensors):
    noise = Noise(SEED)
    words = tensors["token_embd.weight"]
    words[:, WORD] = noise.signs(len(VOCABULARY), CODE)
    words[:, WEIGHT] = -SIGNS
    words[[ID_OF[WORD_START + word] for word in PLAIN_WORDS], WEIGHT] = SIGNS
    tensors["position_embd.weight"][:, POSITION] = noise.signs(
        SHAPE.context_length, PLACE)


def _fill_first_layer(tensors):
    def weight(name):
        return tensors[f"blk.0.{name}.weight"]

    weight("attn_q")[WORD, WORD] = ATTENTION * numpy.eye(CODE)
    weight("attn_k")[WORD, WORD] = numpy.eye(CODE)
    weight("attn_v")[PLACES, POSITION] = numpy.eye(PLACE)
    weight("attn_output")[PLACES, PLACES] = numpy.eye(PLACE)
    # One unit for each place's number that is greater, one where it is less.
    up = weight("ffn_up")
    up[:, POSITION] = DIFFERENCE * numpy.vstack([numpy.eye(PLACE),
                                                 -numpy.eye(PLACE)])
    up[:, PLACES] = -up[:, POSITION]
    up[:, WEIGHT] = BARRIER / 2 * SIGNS
    # The norm before has made 1 so much, where a word stands but once.
    one = math.sqrt(SHAPE.width / (CODE + 2 + 2 * PLACE))
    tensors["blk.0.ffn_up.bias"][:] = -BARRIER * one
    weight("ffn_down")[SHARED] = PAIR * SIGNS[:, None]


def _fill_second_layer(tensors):
    # Queries and keys stay 0: every token sees all tokens alike.
    tensors["blk.1.attn_v.weight"][TOTAL, SHARED] = numpy.eye(2)
    tensors["blk.1.attn_output.weight"][TOTAL, TOTAL] = numpy.eye(2)


def _head():
    """Returns the head: tanh of a linear map, then a linear map to one."""
    tensors = blank_linear("cls", SHAPE.width, SHAPE.width)
    tensors |= blank_linear("cls.output", 1, SHAPE.width)
    tensors["cls.weight"][0, TOTAL] = STEEPNESS / 2 * SIGNS
    tensors["cls.output.weight"][0, 0] = SPAN
    tensors["cls.output.bias"][0] = LOWEST
    return tensors
