"""Tests of tinychat's siblings, as shipped and as the recipes make them."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import numpy

from . import cli, gguf, moe, q4, reranker, vision
from .bert_inference import embed, gelu, score
from .cards import (MODELS, TINYCHAT, TINYDRAFT, TINYEMBED, TINYMOE,
                    TINYRERANK, TINYVISION, TINYVISION_EYE, size_label)
from .checkpoint import Checkpoint
from .conversations import Author
from .english import PLAIN_WORDS, STOP_WORDS
from .family import RECIPES
from .inference import Network
from .samples import LAST_ANSWER_WEIGHT, make_sample
from .shape import draft_shape
from .template import read_template
from .wordpiece import ID_OF, UNKNOWN, VOCABULARY, WORD_START, encode

MAX_BYTES = 1_200_000  # of each file
MAX_TOTAL_BYTES = 6_000_000


def shipped(card):
    return gguf.parse(card.path.read_bytes())


class FilesTest(unittest.TestCase):
    def test_each_is_what_its_recipe_makes(self):
        for card, recipe in RECIPES.items():
            with self.subTest(path=card.path.name):
                self.assertTrue(
                    gguf.dump(recipe()) == card.path.read_bytes(),
                    "its recipe changed: make it anew, and try it")

    def test_make_writes_the_same_files(self):
        with tempfile.TemporaryDirectory() as folder:
            with contextlib.redirect_stdout(io.StringIO()):
                code = cli.main(["make", "--models", folder])
            self.assertEqual(code, 0)
            made = {path.relative_to(folder): path.read_bytes()
                    for path in Path(folder).rglob("*") if path.is_file()}
        self.assertTrue(made == {card.path.relative_to(MODELS):
                                 card.path.read_bytes() for card in RECIPES})

    def test_no_others_are_there(self):
        self.assertEqual(
            set(MODELS.rglob("*.gguf")),
            {card.path for card in (TINYCHAT, TINYDRAFT, *RECIPES)})

    def test_are_small(self):
        sizes = [card.path.stat().st_size for card in (TINYDRAFT, *RECIPES)]
        self.assertLess(max(sizes), MAX_BYTES)
        self.assertLess(sum(sizes), MAX_TOTAL_BYTES)

    def test_say_what_they_are(self):
        for card, architecture, label in (
                (TINYDRAFT, "llama", "184K"), (TINYMOE, "llama", "8x145K"),
                (TINYEMBED, "bert", "183K"), (TINYRERANK, "bert", "277K"),
                (TINYVISION, "llama", "1.9M"),
                (TINYVISION_EYE, "clip", "15K")):
            file = shipped(card)
            self.assertEqual(
                [file.value(f"general.{key}") for key in
                 ("architecture", "size_label", "basename")],
                [architecture, label, card.basename])

    def test_numbers_are_finite(self):
        for card in (TINYDRAFT, *RECIPES):
            for name, tensor in shipped(card).tensors.items():
                if tensor.dtype == gguf.Q4_0:
                    tensor = tensor["scale"]
                self.assertTrue(numpy.isfinite(tensor).all(), name)

    def test_size_labels(self):
        self.assertEqual([size_label(4_000), size_label(999_400),
                          size_label(1_918_080), size_label(145_000, 8)],
                         ["4K", "999K", "1.9M", "8x145K"])

    def test_only_trained_models_are_checkpoints(self):
        for card in RECIPES:
            with self.assertRaises(gguf.FormatError):
                Checkpoint.read(card.path)


class Q4Test(unittest.TestCase):
    def test_halves_of_bytes(self):
        numbers = numpy.arange(-8, 24, dtype="f4").clip(-8, 7)[None]
        blocks = q4.quantize(numbers)
        self.assertEqual(blocks["scale"].tolist(), [[1]])
        self.assertEqual(blocks["nibbles"][0, 0].tolist(),
                         [0xF0 + i for i in range(16)])
        numpy.testing.assert_array_equal(q4.dequantize(blocks), numbers)

    def test_is_near(self):
        numbers = numpy.random.RandomState(1).standard_normal((5, 96))
        blocks = q4.quantize(numbers)
        error = abs(q4.dequantize(blocks) - numbers).reshape(5, 3, 32)
        self.assertLess((error / abs(blocks["scale"][..., None])).max(), 1.01)
        self.assertLess(error.mean(), 0.1)

    def test_zeros_stay(self):
        blocks = q4.quantize(numpy.zeros((1, 32)))
        self.assertEqual(blocks["scale"].tolist(), [[0]])
        self.assertEqual(blocks["nibbles"].tolist(), [[[0x88] * 16]])


class DraftTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.draft = Checkpoint.read(TINYDRAFT.path)
        cls.chat = Checkpoint.read(TINYCHAT.path)

    def test_is_what_the_recipe_writes(self):
        self.assertTrue(self.draft.to_bytes() == TINYDRAFT.path.read_bytes(),
                        "export it anew: the recipe's metadata or template "
                        "changed")
        self.assertEqual(self.draft.shape, draft_shape(765))

    def test_has_tinychats_tokens(self):
        self.assertEqual(self.draft.tokenizer.vocabulary,
                         self.chat.tokenizer.vocabulary)

    def test_some_guesses_are_right_and_some_are_wrong(self):
        author, right, count = Author(41), 0, 0
        for _ in range(30):
            sample = make_sample(self.chat.tokenizer, author.write())
            answers = numpy.array(sample.weights[1:]) == LAST_ANSWER_WEIGHT
            said, guessed = (
                Network(model).logits(sample.ids[:-1]).argmax(-1)[answers]
                for model in (self.chat, self.draft))
            right += (said == guessed).sum()
            count += len(said)
        self.assertGreater(right, count * 0.5)
        self.assertLess(right, count * 0.95)


class MixtureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = shipped(TINYMOE)

    def test_has_experts(self):
        self.assertEqual(self.file.value("llama.expert_count"), 8)
        self.assertEqual(self.file.value("llama.expert_used_count"), 2)
        for name, tensor in self.file.tensors.items():
            if "_exps" in name or "gate_inp" in name:
                self.assertEqual(len(tensor), 8)

    def test_fills_in_the_middle(self):
        tokens = self.file.value("tokenizer.ggml.tokens")
        for name, token in moe.FILL_TOKENS.items():
            token_id = self.file.value(f"tokenizer.ggml.{name}_token_id")
            self.assertEqual(tokens[token_id], token)

    def test_has_tinychats_tokens_and_template(self):
        tokens = self.file.value("tokenizer.ggml.tokens")
        chat = shipped(TINYCHAT)
        self.assertEqual(tokens[:-len(moe.FILL_TOKENS)],
                         chat.value("tokenizer.ggml.tokens"))
        self.assertEqual(self.file.value("tokenizer.chat_template"),
                         read_template())


class EmbedderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = shipped(TINYEMBED)

    def test_spells_any_english(self):
        self.assertEqual(len(set(VOCABULARY)), len(VOCABULARY))
        self.assertEqual(set(PLAIN_WORDS) & set(STOP_WORDS), set())
        ids = encode("Zyzzyva-42's \"quixotic\" PJ (x_y@z.com) & #9%; ok?")
        self.assertNotIn(ID_OF[UNKNOWN], ids)
        self.assertEqual(
            [VOCABULARY[i] for i in encode("Foxes, qz")],
            [WORD_START + "fox", "es", WORD_START + ",", WORD_START + "q",
             "z"])

    def test_texts_are_alike_as_far_as_they_share_words(self):
        paris, berlin, dog = (embed(self.file, text) for text in (
            "Paris is the capital of France",
            "Berlin is the capital of Germany", "The dog likes to run fast"))
        self.assertGreater(paris @ berlin, 0.6)
        self.assertLess(paris @ dog, 0.5)
        self.assertLess(embed(self.file, "hello") @ embed(self.file, "car"),
                        0.8)


class RerankerTest(unittest.TestCase):
    def test_counts_shared_words(self):
        file = shipped(TINYRERANK)
        scores = [score(file, "What is the capital of France?", document)
                  for document in (
                      "Paris is the capital of France.",
                      "The capital city is big.",
                      "The capital city is big, and in summer it is hot.",
                      "What is the time?")]
        self.assertEqual(scores, sorted(scores, reverse=True))
        self.assertGreater(scores[0], 0)
        self.assertAlmostEqual(scores[-1], reranker.LOWEST, places=2)

    def test_no_token_takes_another_for_its_like(self):
        codes = shipped(TINYRERANK).tensors["token_embd.weight"]
        codes = codes[:, reranker.WORD].astype("f4")
        likeness = codes @ codes.T
        numpy.fill_diagonal(likeness, 0)
        self.assertLess(likeness.max(), reranker.CODE * 0.8)


class VisionTest(unittest.TestCase):
    def test_eye_fits_the_model(self):
        self.assertEqual(
            shipped(TINYVISION_EYE).value("clip.vision.projection_dim"),
            shipped(TINYVISION).value("llama.embedding_length"))

    def test_sees_colours(self):
        for colour, word in {
                (255, 0, 0): "red", (220, 50, 40): "red",
                (0, 255, 0): "green", (0, 128, 0): "green",
                (0, 0, 255): "blue", (255, 0, 255): "queen",
                (255, 255, 0): "summer", (255, 165, 0): "summer",
                (0, 255, 255): "water", (255, 255, 255): "paper",
                (0, 0, 0): "coffee", (0, 0, 90): "coffee",
                (128, 128, 128): "stone"}.items():
            self.assertEqual(self._seen(colour), word, colour)

    def _seen(self, colour):
        """Returns the word that is nearest to what the eye makes of it."""
        tensors = shipped(TINYVISION_EYE).tensors
        values = numpy.array(colour) / 255 - vision.MEAN
        image = numpy.tile((values / vision.DEVIATION)[:, None, None],
                           (vision.PIXELS, vision.PIXELS))
        patch = (tensors["v.patch_embd.weight"] * image).sum((1, 2, 3))
        for name in ("mm.0", "mm.2"):
            if name == "mm.2":
                patch = gelu(patch)
            patch = (tensors[f"{name}.weight"].astype("f4") @ patch
                     + tensors[f"{name}.bias"])
        chat = Checkpoint.read(TINYCHAT.path)
        words = chat.tensors["token_embd.weight"].astype("f4")
        distances = numpy.linalg.norm(words - patch, axis=1)
        nearest = int(distances.argmin())
        self.assertLess(distances[nearest], numpy.linalg.norm(patch) / 2)
        return chat.tokenizer.decode([nearest]).strip()


if __name__ == "__main__":
    unittest.main()
