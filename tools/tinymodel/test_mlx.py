"""Tests of the folder for mlx_lm. They need only NumPy."""

import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import numpy

from . import affine, cli, mlx, safetensors
from .checkpoint import SHIPPED, Checkpoint
from .gguf import FormatError
from .inference import complete
from .shape import ROPE_BASE, Shape
from .template import read_template
from .tokenizer import SPECIAL_TOKENS


def rotate_halves(vectors):
    """Turns halves by their position, as Hugging Face's models do."""
    tokens, width = vectors.shape[-2:]
    speeds = ROPE_BASE ** (-numpy.arange(0, width, 2) / width)
    angles = numpy.arange(tokens)[:, None] * speeds
    cosine, sine = numpy.cos(angles), numpy.sin(angles)
    first, second = numpy.split(vectors, 2, axis=-1)
    return numpy.concatenate((first * cosine - second * sine,
                              first * sine + second * cosine), axis=-1)


def rotate_pairs(vectors):
    """Turns neighbours. The results are in another order, for all alike."""
    return rotate_halves(numpy.concatenate(
        (vectors[..., 0::2], vectors[..., 1::2]), axis=-1))


class SafetensorsTest(unittest.TestCase):
    tensors = {"a": numpy.arange(3, dtype="<f2"),
               "b": numpy.arange(4, dtype="<u4").reshape(2, 2)}

    def test_reads_what_it_writes(self):
        data = safetensors.dump(self.tensors, {"format": "mlx"})
        found, metadata = safetensors.parse(data)
        self.assertEqual(metadata, {"format": "mlx"})
        self.assertEqual(list(found), ["a", "b"])
        for name, tensor in self.tensors.items():
            numpy.testing.assert_array_equal(found[name], tensor)

    def test_data_is_aligned(self):
        data = safetensors.dump(self.tensors, {})
        self.assertEqual((len(data) - 6 - 16) % safetensors.ALIGNMENT_BYTES, 0)

    def test_refuses_what_it_does_not_know(self):
        whole = safetensors.dump(self.tensors, {})
        for data in (whole[:-1], whole[:20], whole.replace(b"U32", b"I32")):
            with self.assertRaises(FormatError):
                safetensors.parse(data)


class AffineTest(unittest.TestCase):
    def test_is_near(self):
        matrix = numpy.random.default_rng(1).normal(size=(3, 128))
        for bits in (4, 8):
            words, scales, biases = affine.pack(matrix, bits)
            self.assertEqual(words.shape, (3, 128 * bits // 32))
            self.assertEqual(scales.shape, (3, 2))
            near = affine.unpack(words, scales, biases, bits)
            error = numpy.abs(near - matrix).reshape(3, 2, 64).max(axis=-1)
            self.assertTrue((error <= 0.6 * scales).all())

    def test_lowest_bits_come_first(self):
        row = numpy.arange(64)[None] % 16
        words, scales, biases = affine.pack(row, 4)
        self.assertEqual((scales[0, 0], biases[0, 0]), (1, 0))
        self.assertEqual(words[0, 0], 0x76543210)

    def test_one_value(self):
        near = affine.unpack(*affine.pack(numpy.full((1, 64), 3), 4), 4)
        self.assertTrue((near == 3).all())


class ShippedFolderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gguf = Checkpoint.read(SHIPPED)
        cls.read_back = mlx.read(mlx.SHIPPED)

    def text(self, name):
        return json.loads((mlx.SHIPPED / name).read_text(encoding="utf-8"))

    def test_is_what_the_recipe_writes(self):
        for at, options in ((mlx.SHIPPED, []),
                            (mlx.SHIPPED_4BIT, ["--bits", "4"])):
            with tempfile.TemporaryDirectory() as folder:
                with contextlib.redirect_stdout(io.StringIO()):
                    code = cli.main(["mlx", "--out", folder] + options)
                self.assertEqual(code, 0)
                written = {path.name: path.read_bytes()
                           for path in Path(folder).iterdir()}
            shipped = {path.name: path.read_bytes() for path in at.iterdir()}
            self.assertEqual(set(written), set(shipped))
            for name, content in shipped.items():
                self.assertTrue(written[name] == content,
                                f"write it anew: {at.name}/{name} differs")

    def test_has_the_same_parameters(self):
        self.assertEqual(self.read_back.shape, self.gguf.shape)
        self.assertEqual(self.read_back.tokenizer.vocabulary,
                         self.gguf.tokenizer.vocabulary)
        for name, tensor in self.gguf.tensors.items():
            numpy.testing.assert_array_equal(
                self.read_back.tensors[name], tensor.astype("<f2"), name)

    def test_turns_halves(self):
        tensors, _ = safetensors.parse(
            (mlx.SHIPPED / mlx.WEIGHTS).read_bytes())
        values = numpy.random.default_rng(1).normal(size=(20, 192))

        def attend(query, key, rotate):
            query, key = (
                rotate((values @ weight.T.astype(float)).reshape(20, 6, 32)
                       .swapaxes(0, 1)) for weight in (query, key))
            return query @ key.swapaxes(1, 2)

        layer = "model.layers.0.self_attn"
        numpy.testing.assert_allclose(
            attend(tensors[f"{layer}.q_proj.weight"],
                   tensors[f"{layer}.k_proj.weight"], rotate_halves),
            attend(self.gguf.tensors["blk.0.attn_q.weight"],
                   self.gguf.tensors["blk.0.attn_k.weight"], rotate_pairs))

    def test_answers_like_the_other_file(self):
        prompt = ("<|im_start|>user\nWhat is the capital of France?<|im_end|>"
                  "\n<|im_start|>assistant\n")
        expected = complete(self.gguf, prompt)
        self.assertEqual(complete(self.read_back, prompt), expected)
        small = mlx.read(mlx.SHIPPED_4BIT)
        self.assertEqual(complete(small, prompt), expected)

    def test_settings(self):
        config = self.text("config.json")
        self.assertEqual(config["vocab_size"], 765)
        self.assertEqual(config["max_position_embeddings"], 8192)
        index = self.text("model.safetensors.index.json")
        self.assertEqual(index["metadata"]["total_parameters"],
                         self.gguf.parameter_count())
        self.assertEqual(index["metadata"]["total_size"],
                         2 * self.gguf.parameter_count())
        words = self.text("tokenizer_config.json")
        self.assertEqual(words["chat_template"], read_template())
        vocabulary = self.gguf.tokenizer.vocabulary
        ends = self.text("generation_config.json")["eos_token_id"]
        self.assertEqual([vocabulary[end] for end in ends],
                         ["<|im_end|>", "<|endoftext|>"])

    def test_tokens_have_their_numbers(self):
        tokenizer = self.text("tokenizer.json")
        id_of = tokenizer["model"]["vocab"] | {
            token["content"]: token["id"]
            for token in tokenizer["added_tokens"]}
        self.assertEqual(id_of, self.gguf.tokenizer.id_of)
        special = {token["content"] for token in tokenizer["added_tokens"]
                   if token["special"]}
        self.assertEqual(special, {token for token in SPECIAL_TOKENS
                                   if token.startswith("<|")})

    def test_other_models_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in mlx.dump(self.gguf).items():
                if name == "config.json":
                    content = content.replace(b'"num_hidden_layers": 4',
                                              b'"num_hidden_layers": 5')
                Path(folder, name).write_bytes(content)
            with self.assertRaises(FormatError):
                mlx.read(folder)
        self.assertEqual(self.read_back.shape, Shape(vocabulary=765))


if __name__ == "__main__":
    unittest.main()
