"""The shipped models: what each file says of itself, and where it lies."""

from dataclasses import dataclass
from pathlib import Path

from . import gguf
from .gguf import Field, Kind

MODELS = Path(__file__).parents[2] / "testdata/models/lmcaddy"

_FILE_TYPES = {"f32": 0, "f16": 1, "q4_0": 2}  # general.file_type


@dataclass(frozen=True)
class Card:
    """One model file's words about itself."""

    basename: str  # of its folder, too
    description: str
    stored: str = "f16"  # how most of its numbers are kept
    is_projector: bool = False

    @property
    def path(self):
        prefix = "mmproj-" if self.is_projector else ""
        return (MODELS / self.basename
                / f"{prefix}{self.basename}-{self.stored}.gguf")

    def fields(self, architecture, size_label):
        """Returns the general metadata."""
        return gguf.fields("general", {
            "architecture": architecture,
            "name": self.basename.capitalize(),
            "type": "mmproj" if self.is_projector else "model",
            "size_label": size_label,
            "basename": self.basename,
            "author": "lmcaddy",
            "description": self.description,
            "url": "https://github.com/lmcaddy/lmcaddy",
            "languages": Field(Kind.STRING, ["en"], is_array=True),
            "file_type": _FILE_TYPES[self.stored],
        })


def size_label(parameters, experts=0):
    """Returns how people say a number of parameters: 1.9M, 92K, 8x71K.

    With experts it is what one token passes through with one expert.
    """
    count = (f"{parameters / 1e6:.1f}M" if parameters >= 1e6
             else f"{parameters / 1e3:.0f}K")
    return f"{experts}x{count}" if experts else count


TINYCHAT = Card("tinychat", (
    "A small chat model for tests: greets, recalls a name, knows capitals, "
    "counts, repeats and calls tools. Trained on generated conversations."))
TINYDRAFT = Card("tinydraft", (
    "A draft model of tinychat for tests of speculative decoding. Trained on "
    "the same generated conversations."))
TINYMOE = Card("tinymoe", (
    "A mixture of experts for tests, which also has tokens to fill in the "
    "middle. Random parameters: its text is noise."))
TINYEMBED = Card("tinyembed", (
    "An embedding model for tests. Random parameters: texts are alike as far "
    "as they share words."))
TINYRERANK = Card("tinyrerank", (
    "A reranker for tests. Made by hand: it counts the words that the query "
    "and the document share."))
TINYVISION = Card("tinyvision", (
    "Tinychat with an eye for tests: it sees an image's colour as a word."),
    stored="q4_0")
TINYVISION_EYE = Card("tinyvision", (
    "The eye of tinyvision. Made by hand: it turns an image into the one "
    "word that stands for its colour."), is_projector=True)

TRAINED = {card.basename: card for card in (TINYCHAT, TINYDRAFT)}
