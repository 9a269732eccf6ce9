"""What the embedding model and the reranker say, in plain NumPy.

As an engine computes it, but slowly: enough to test a file.
"""

import numpy

from .bert import ARCHITECTURE, NORM_EPSILON
from .wordpiece import FIRST, ID_OF, SEPARATOR, encode


def embed(file, text):
    """Returns a text's vector, of length 1."""
    mean = _states(file, _marked(text)).mean(0)
    return mean / numpy.linalg.norm(mean)


def score(file, query, document):
    """Returns how well a document answers a query: more is better."""
    ids = [*_marked(query), *encode(document), ID_OF[SEPARATOR]]
    first = _states(file, ids)[0]
    head = numpy.tanh(_linear(file, "cls", first))
    return float(_linear(file, "cls.output", head)[0])


def _marked(text):
    return [ID_OF[FIRST], *encode(text), ID_OF[SEPARATOR]]


def _linear(file, name, values):
    weight = file.tensors[f"{name}.weight"].astype("f4")
    return values @ weight.T + file.tensors[f"{name}.bias"]


def _normalise(file, name, values):
    values = values - values.mean(-1, keepdims=True)
    values /= numpy.sqrt((values ** 2).mean(-1, keepdims=True) + NORM_EPSILON)
    return (values * file.tensors[f"{name}.weight"]
            + file.tensors[f"{name}.bias"])


def gelu(values):
    """Returns GELU by its usual approximation."""
    return values / 2 * (1 + numpy.tanh(
        (2 / numpy.pi) ** 0.5 * (values + 0.044715 * values ** 3)))


def _attend(file, layer, values):
    heads = file.value(f"{ARCHITECTURE}.attention.head_count")

    def split(name):
        projected = _linear(file, f"{layer}.{name}", values)
        return numpy.stack(numpy.split(projected, heads, axis=-1))

    query, key, value = map(split, ("attn_q", "attn_k", "attn_v"))
    scores = query @ key.swapaxes(1, 2) / query.shape[-1] ** 0.5
    scores = numpy.exp(scores - scores.max(-1, keepdims=True))
    mixed = scores / scores.sum(-1, keepdims=True) @ value
    return _linear(file, f"{layer}.attn_output", numpy.hstack(mixed))


def _states(file, ids):
    """Returns each token's last vector."""
    tables = file.tensors
    values = (tables["token_embd.weight"][ids].astype("f4")
              + tables["position_embd.weight"][:len(ids)]
              + tables["token_types.weight"][0])
    values = _normalise(file, "token_embd_norm", values)
    for number in range(file.value(f"{ARCHITECTURE}.block_count")):
        layer = f"blk.{number}"
        values = _normalise(file, f"{layer}.attn_output_norm",
                            values + _attend(file, layer, values))
        widened = gelu(_linear(file, f"{layer}.ffn_up", values))
        values = _normalise(
            file, f"{layer}.layer_output_norm",
            values + _linear(file, f"{layer}.ffn_down", widened))
    return values
