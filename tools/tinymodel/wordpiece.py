"""The vocabulary of the embedding models: WordPiece, as BERT has it.

An engine writes text in lower case, without accents, and splits it into
words and signs. A word is a token, or it is spelled by the longest tokens
that fit, one that begins words first; llama.cpp marks those with U+2581.
All letters and digits are there in both forms, so ordinary English never
becomes the unknown token.
"""

import re
import string

from . import gguf
from .english import ENDINGS, PLAIN_WORDS, STOP_WORDS
from .gguf import Field, Kind
from .tokenizer import TokenType

WORD_START = "\u2581"
PADDING, UNKNOWN, FIRST, SEPARATOR, MASK = SPECIAL_TOKENS = (
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

_LETTERS = string.ascii_lowercase + string.digits
_SIGNS = string.punctuation + "\u201c\u201d\u2018\u2019\u2013\u2014\u2026"


def _unique(tokens):
    return list(dict.fromkeys(tokens))


VOCABULARY = list(SPECIAL_TOKENS) + _unique(
    [WORD_START + token
     for token in [*_SIGNS, *_LETTERS, *STOP_WORDS, *PLAIN_WORDS]]
    + [*_LETTERS, *ENDINGS])
ID_OF = {token: i for i, token in enumerate(VOCABULARY)}
_LONGEST = max(map(len, VOCABULARY))


def encode(text):
    """Returns a text's token ids, without marks; ASCII as engines do it."""
    ids = []
    for word in re.findall(r"[a-z0-9]+|[^a-z0-9\s]", text.lower()):
        ids += _encode_word(WORD_START + word)
    return ids


def _encode_word(rest):
    ids = []
    while rest:
        for size in range(min(len(rest), _LONGEST), 0, -1):
            if rest[:size] in ID_OF:
                break
        else:
            return [ID_OF[UNKNOWN]]  # for the whole word
        ids.append(ID_OF[rest[:size]])
        rest = rest[size:]
    return ids


def tokenizer_fields():
    """Returns the metadata about the tokens."""
    types = [TokenType.CONTROL if token in SPECIAL_TOKENS
             else TokenType.NORMAL for token in VOCABULARY]
    return gguf.fields("tokenizer.ggml", {
        "model": "bert",
        "pre": "default",
        "tokens": VOCABULARY,
        "token_type": Field(Kind.INT32, types, is_array=True),
        "token_type_count": 2,
        "bos_token_id": ID_OF[FIRST],
        "eos_token_id": ID_OF[SEPARATOR],
        "unknown_token_id": ID_OF[UNKNOWN],
        "seperator_token_id": ID_OF[SEPARATOR],  # so misspelt by the format
        "padding_token_id": ID_OF[PADDING],
        "cls_token_id": ID_OF[FIRST],
        "mask_token_id": ID_OF[MASK],
    })
