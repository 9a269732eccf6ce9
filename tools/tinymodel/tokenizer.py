"""Byte-level BPE, as engines do it for GGUF files of model "gpt2".

Text is split at special tokens, the rest into pieces (words, single digits,
punctuation, line ends); a piece's UTF-8 bytes are written as one printable
character each, and neighbours are merged in the order in which the merges
were learnt. The merges alone define the vocabulary: 256 bytes, then one
token for each merge, then the special tokens.
"""

import re
from collections import Counter
from enum import IntEnum


class TokenType(IntEnum):
    """What an engine may do with a token, as GGUF numbers it.

    CONTROL tokens never appear in an answer's text. The think and tool tags
    are USER_DEFINED instead: still single tokens, but visible, because the
    engine finds reasoning and tool calls by those tags in the text.
    """

    NORMAL = 1
    CONTROL = 3
    USER_DEFINED = 4


END_OF_TEXT = "<|endoftext|>"
START_OF_MESSAGE = "<|im_start|>"
END_OF_MESSAGE = "<|im_end|>"

SPECIAL_TOKENS = {
    END_OF_TEXT: TokenType.CONTROL,
    START_OF_MESSAGE: TokenType.CONTROL,
    END_OF_MESSAGE: TokenType.CONTROL,
    "<think>": TokenType.USER_DEFINED,
    "</think>": TokenType.USER_DEFINED,
    "<tool_call>": TokenType.USER_DEFINED,
    "</tool_call>": TokenType.USER_DEFINED,
    "<tool_response>": TokenType.USER_DEFINED,
    "</tool_response>": TokenType.USER_DEFINED,
}

# The ASCII part of the split that llama.cpp calls PRE_TOKENIZER. Outside
# ASCII the two differ in where they split, but generated text is ASCII.
PRE_TOKENIZER = "qwen2"
_PIECE = re.compile(
    r"'(?:s|t|re|ve|m|ll|d)"
    r"|[^\r\nA-Za-z0-9]?[A-Za-z]+"
    r"|[0-9]"
    r"| ?[^\sA-Za-z0-9]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+")
_SPECIAL = re.compile("(" + "|".join(map(re.escape, SPECIAL_TOKENS)) + ")")

MIN_PAIR_COUNT = 50  # rarer pairs are not worth a token
MAX_CACHED_PIECES = 200_000


def _printable_bytes():
    """Maps each byte, in order, to the character GPT-2 writes it as."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    table, next_code = {}, 256
    for byte in range(256):
        if byte in printable:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(next_code)
            next_code += 1
    return table


_CHARACTER_OF_BYTE = _printable_bytes()
_BYTE_OF_CHARACTER = {char: byte for byte, char in _CHARACTER_OF_BYTE.items()}


def _pieces(text):
    """Yields the text's pieces, their bytes written as characters."""
    for piece in _PIECE.findall(text):
        yield "".join(_CHARACTER_OF_BYTE[byte] for byte in piece.encode())


def _merge(symbols, pair):
    """Returns the symbols with each occurrence of the pair joined."""
    merged, index = [], 0
    while index < len(symbols):
        if tuple(symbols[index:index + 2]) == pair:
            merged.append(pair[0] + pair[1])
            index += 2
        else:
            merged.append(symbols[index])
            index += 1
    return merged


def learn_merges(texts, max_merges):
    """Returns up to max_merges pairs, the most frequent of its round first.

    Counts anew in each round: slow (half a minute for the 6,000 texts of
    the recipe) but short, and needed once.
    """
    counts = Counter()
    for text in texts:
        for segment in _SPECIAL.split(text):
            if segment not in SPECIAL_TOKENS:
                counts.update(_pieces(segment))
    symbols_of = {piece: list(piece) for piece in counts}
    merges = []
    while len(merges) < max_merges:
        pairs = Counter()
        for piece, symbols in symbols_of.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += counts[piece]
        if not pairs:
            break
        best, count = pairs.most_common(1)[0]
        if count < MIN_PAIR_COUNT:
            break
        merges.append(best)
        joined = best[0] + best[1]
        for piece, symbols in symbols_of.items():
            if joined in piece:
                symbols_of[piece] = _merge(symbols, best)
    return merges


class Tokenizer:
    """Turns text to token ids and back, by its merges."""

    def __init__(self, merges):
        """Takes pairs of symbols, the first learnt first."""
        self.merges = [tuple(pair) for pair in merges]
        self.vocabulary = (
            list(_CHARACTER_OF_BYTE.values())
            + [left + right for left, right in self.merges]
            + list(SPECIAL_TOKENS))
        self.id_of = {token: i for i, token in enumerate(self.vocabulary)}
        self._rank_of = {pair: rank for rank, pair in enumerate(self.merges)}
        self._cache = {}

    @classmethod
    def from_lines(cls, lines):
        """Makes a tokenizer of merges written as "left right"."""
        return cls([line.split(" ") for line in lines])

    def to_lines(self):
        return [f"{left} {right}" for left, right in self.merges]

    def token_types(self):
        normal = len(self.vocabulary) - len(SPECIAL_TOKENS)
        return [TokenType.NORMAL] * normal + list(SPECIAL_TOKENS.values())

    def encode(self, text):
        ids = []
        for segment in _SPECIAL.split(text):
            if segment in SPECIAL_TOKENS:
                ids.append(self.id_of[segment])
            else:
                for piece in _pieces(segment):
                    ids += self._encode_piece(piece)
        return ids

    def decode(self, ids):
        """Returns the text; bytes that are no UTF-8 become U+FFFD."""
        data = bytearray()
        for token_id in ids:
            token = self.vocabulary[token_id]
            if token in SPECIAL_TOKENS:
                data += token.encode()
            else:
                data += bytes(_BYTE_OF_CHARACTER[char] for char in token)
        return data.decode(errors="replace")

    def _encode_piece(self, piece):
        if piece in self._cache:
            return self._cache[piece]
        symbols = list(piece)
        while len(symbols) > 1:
            known = [pair for pair in zip(symbols, symbols[1:])
                     if pair in self._rank_of]
            if not known:
                break
            symbols = _merge(symbols, min(known, key=self._rank_of.get))
        ids = [self.id_of[symbol] for symbol in symbols]
        if len(self._cache) < MAX_CACHED_PIECES:
            self._cache[piece] = ids
        return ids
