"""The models that are made without training, and where each file lies."""

from . import embedder, moe, reranker, vision
from .cards import (TINYEMBED, TINYMOE, TINYRERANK, TINYVISION,
                    TINYVISION_EYE)

RECIPES = {
    TINYMOE: moe.make,
    TINYEMBED: embedder.make,
    TINYRERANK: reranker.make,
    TINYVISION: vision.make,
    TINYVISION_EYE: vision.make_eye,
}
