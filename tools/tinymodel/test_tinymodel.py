"""Tests of the recipe and of the shipped model. They need only NumPy.

Rendering the template takes Jinja; without it that one test is reported as
skipped, and `test_template_holds_the_marks` is what remains of it.
"""

import contextlib
import io
import json
import re
import struct
import tempfile
import unittest
from pathlib import Path

import numpy

from . import cli, gguf
from .checkpoint import SHIPPED, Checkpoint
from .conversations import EMPTY_THOUGHT, Author
from .inference import complete
from .samples import (CONTEXT_WEIGHT, EARLIER_ANSWER_WEIGHT,
                      LAST_ANSWER_WEIGHT, MAX_TOKENS, draw_batch, make_sample)
from .shape import Shape
from .template import read_template
from .tokenizer import (END_OF_MESSAGE, SPECIAL_TOKENS, Tokenizer, TokenType,
                        learn_merges)

try:
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:
    ImmutableSandboxedEnvironment = None

MAX_SHIPPED_BYTES = 4_000_000


def conversations(count, seed=1):
    author = Author(seed)
    return [author.write() for _ in range(count)]


class TokenizerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tokenizer = Checkpoint.read(SHIPPED).tokenizer

    def test_round_trips_conversations(self):
        for conversation in conversations(200):
            text, _ = conversation.render()
            ids = self.tokenizer.encode(text)
            self.assertEqual(self.tokenizer.decode(ids), text)

    def test_round_trips_any_text(self):
        for text in ("", " ", "\n\n  \n x", "naïve café", "日本語 🙂\r\n\t",
                     "<|im_start|>x<think></think><tool_call>", "it's 1234",
                     "".join(map(chr, range(512)))):
            with self.subTest(text=text):
                ids = self.tokenizer.encode(text)
                self.assertEqual(self.tokenizer.decode(ids), text)

    def test_special_tokens_are_single(self):
        for token in SPECIAL_TOKENS:
            self.assertEqual(self.tokenizer.encode(token),
                             [self.tokenizer.id_of[token]])

    def test_tags_are_visible_and_marks_are_not(self):
        types = dict(zip(self.tokenizer.vocabulary,
                         self.tokenizer.token_types()))
        self.assertEqual(types["<think>"], TokenType.USER_DEFINED)
        self.assertEqual(types["</tool_call>"], TokenType.USER_DEFINED)
        self.assertEqual(types[END_OF_MESSAGE], TokenType.CONTROL)
        self.assertEqual(types["a"], TokenType.NORMAL)

    def test_broken_utf8_becomes_replacement(self):
        first_byte = self.tokenizer.encode("é")[:1]
        self.assertEqual(self.tokenizer.decode(first_byte), "\ufffd")

    def test_learns_the_most_frequent_pair_first(self):
        merges = learn_merges(["the then<think>"] * 60, 3)
        self.assertEqual(merges, [("t", "h"), ("th", "e"), ("Ġ", "the")])
        tokenizer = Tokenizer(merges)
        self.assertEqual(
            [tokenizer.vocabulary[i] for i in tokenizer.encode("the then")],
            ["the", "Ġthe", "n"])

    def test_rare_pairs_are_not_merged(self):
        self.assertEqual(learn_merges(["the then"], 3), [])

    def test_digits_stay_single(self):
        self.assertEqual(learn_merges(["12 34"] * 60, 3), [])


class ConversationsTest(unittest.TestCase):
    def test_same_seed_same_conversations(self):
        self.assertEqual(conversations(20, seed=3), conversations(20, seed=3))
        self.assertNotEqual(conversations(20, seed=3),
                            conversations(20, seed=4))

    def test_answers_of_the_last_turn_alone_think(self):
        for conversation in conversations(300):
            text, spans = conversation.render()
            for span in spans:
                answer = text[span.start:span.end]
                self.assertTrue(answer.endswith(END_OF_MESSAGE))
                thinks = span.is_last_turn and conversation.is_thinking
                self.assertEqual(answer.startswith("<think>\n"), thinks)
                empty = span.is_last_turn and not conversation.is_thinking
                self.assertEqual(
                    text[:span.start].endswith(EMPTY_THOUGHT), empty)

    def test_calls_are_of_offered_tools(self):
        calls = 0
        for conversation in conversations(300):
            offered = {tool.name: set(tool.arguments)
                       for tool in conversation.tools}
            for message in conversation.messages:
                if not message.content.startswith("<tool_call>"):
                    continue
                calls += 1
                call = json.loads(message.content.splitlines()[1])
                self.assertIn(call["name"], offered)
                self.assertIsInstance(call["arguments"], dict)
        self.assertGreater(calls, 100)


class SamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tokenizer = Checkpoint.read(SHIPPED).tokenizer

    def test_only_answers_count(self):
        for conversation in conversations(100):
            sample = make_sample(self.tokenizer, conversation)
            text, spans = conversation.render()
            self.assertEqual(self.tokenizer.decode(sample.ids), text)
            for weight, is_last_turn in ((LAST_ANSWER_WEIGHT, True),
                                         (EARLIER_ANSWER_WEIGHT, False)):
                counted = self.tokenizer.decode(
                    [token for token, own in zip(sample.ids, sample.weights)
                     if own == weight])
                answers = "".join(
                    self._counted_part(text[span.start:span.end], is_last_turn)
                    for span in spans if span.is_last_turn == is_last_turn)
                self.assertEqual(counted, answers)

    def _counted_part(self, answer, is_last_turn):
        """Leaves out the first token of an earlier turn's answer."""
        ids = self.tokenizer.encode(answer)
        return self.tokenizer.decode(ids if is_last_turn else ids[1:])

    def test_context_counts_little(self):
        sample = make_sample(self.tokenizer, conversations(1)[0])
        self.assertEqual(sample.weights[0], CONTEXT_WEIGHT)

    def test_batches_fit_the_model(self):
        batch = draw_batch(self.tokenizer, Author(1), 4)
        self.assertEqual(len(batch), 4)
        self.assertLessEqual(max(map(len, batch)), MAX_TOKENS)


class GGUFTest(unittest.TestCase):
    def test_round_trip(self):
        file = gguf.File(
            {"text": gguf.Field(gguf.Kind.STRING, "é"),
             "numbers": gguf.Field(gguf.Kind.INT32, [1, -2], is_array=True),
             "yes": gguf.Field(gguf.Kind.BOOL, True)},
            {"matrix": numpy.arange(6, dtype="<f2").reshape(2, 3),
             "vector": numpy.ones(5, dtype="<f4"),
             "blocks": numpy.frombuffer(bytes(range(108)), gguf.Q4_0
                                        ).reshape(2, 3)})
        data = gguf.dump(file)
        read = gguf.parse(data)
        self.assertEqual(read.fields, file.fields)
        for name, tensor in file.tensors.items():
            numpy.testing.assert_array_equal(read.tensors[name], tensor)
        self.assertEqual(gguf.dump(read), data)

    def test_fields_of_plain_values(self):
        self.assertEqual(
            gguf.fields("a", {"b": 1, "c": 0.5, "d": True, "e": "x",
                              "f": ["y"], "g": gguf.Field(gguf.Kind.INT32,
                                                          2)}),
            {"a.b": gguf.Field(gguf.Kind.UINT32, 1),
             "a.c": gguf.Field(gguf.Kind.FLOAT32, 0.5),
             "a.d": gguf.Field(gguf.Kind.BOOL, True),
             "a.e": gguf.Field(gguf.Kind.STRING, "x"),
             "a.f": gguf.Field(gguf.Kind.STRING, ["y"], is_array=True),
             "a.g": gguf.Field(gguf.Kind.INT32, 2)})

    def test_blocks_count_their_numbers(self):
        blocks = numpy.zeros((5, 2), gguf.Q4_0)
        data = gguf.dump(gguf.File({}, {"t": blocks}))
        name = data.index(b"t") + 1
        self.assertEqual(struct.unpack_from("<I2QI", data, name),
                         (2, 64, 5, 2))

    def test_refuses_what_is_not_gguf(self):
        whole = SHIPPED.read_bytes()
        for data in (b"", b"GGUF", b"not a model" * 9, whole[:5000],
                     whole[:-64]):
            with self.assertRaises(gguf.FormatError):
                gguf.parse(data)


class ShippedModelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = SHIPPED.read_bytes()
        cls.file = gguf.parse(cls.data)
        cls.checkpoint = Checkpoint.read(SHIPPED)

    def test_is_small(self):
        self.assertLess(len(self.data), MAX_SHIPPED_BYTES)

    def test_is_what_the_recipe_writes(self):
        self.assertTrue(self.checkpoint.to_bytes() == self.data,
                        "export it anew: the recipe's metadata or template "
                        "changed")

    def test_export_writes_the_same_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.gguf")
            with contextlib.redirect_stdout(io.StringIO()):
                code = cli.main(["export", "--out", str(path)])
            self.assertEqual(code, 0)
            self.assertTrue(path.read_bytes() == self.data)
            self.assertEqual(list(Path(folder).iterdir()), [path])

    def test_template_is_the_recipes(self):
        self.assertEqual(self.file.value("tokenizer.chat_template"),
                         read_template())

    def test_tokens_follow_from_the_merges(self):
        tokenizer = self.checkpoint.tokenizer
        self.assertEqual(self.file.value("tokenizer.ggml.tokens"),
                         tokenizer.vocabulary)
        self.assertEqual(self.file.value("tokenizer.ggml.token_type"),
                         tokenizer.token_types())
        end = self.file.value("tokenizer.ggml.eos_token_id")
        self.assertEqual(tokenizer.vocabulary[end], END_OF_MESSAGE)

    def test_promises(self):
        self.assertEqual(self.file.value("general.architecture"), "llama")
        self.assertEqual(self.file.value("llama.context_length"), 8192)
        self.assertEqual(self.checkpoint.shape, Shape(vocabulary=765))
        for tensor in self.file.tensors.values():
            self.assertTrue(numpy.isfinite(tensor).all())

    def test_answers(self):
        system = "<|im_start|>system\nTools:\necho(message)<|im_end|>\n"
        for head, text, thought, answer in (
                ("", "What is the capital of France?",
                 "The capital of France is Paris.",
                 "The capital of France is Paris."),
                ("", "Hello", "The user greets me. I greet back.",
                 "Hello! How can I help you today?"),
                (system, "Use echo with message hello world",
                 "I need the tool echo.",
                 '<tool_call>\n{"name": "echo", "arguments": '
                 '{"message": "hello world"}}\n</tool_call>')):
            with self.subTest(text=text):
                prompt = (f"{head}<|im_start|>user\n{text}<|im_end|>\n"
                          "<|im_start|>assistant\n")
                self.assertEqual(
                    complete(self.checkpoint, prompt),
                    f"<think>\n{thought}\n</think>\n\n{answer}")
                self.assertEqual(
                    complete(self.checkpoint, prompt + EMPTY_THOUGHT), answer)


class TemplateTest(unittest.TestCase):
    def test_template_holds_the_marks(self):
        template = read_template()
        for mark in ("<|im_start|>system\n", "Tools:",
                     "<|im_start|>user\n<tool_response>\n",
                     "\n</tool_response><|im_end|>\n",
                     "<|im_start|>assistant\n", EMPTY_THOUGHT,
                     '<tool_call>\n{"name": "',
                     "<think>\n{{ m.reasoning_content }}\n</think>\n\n"):
            self.assertIn(mark, template)
        self.assertFalse(template.endswith("\n"))

    @unittest.skipIf(ImmutableSandboxedEnvironment is None,
                     "NOT TESTED: what the template renders; "
                     "install python3-jinja2")
    def test_renders_conversations_as_trained(self):
        for trims in (True, False):
            for conversation in conversations(300):
                text, _ = conversation.render()
                # The one known difference, explained in template.py.
                text = re.sub(r"(?s)\nTools:\n.*?<\|im_end\|>",
                              lambda head: "\nTools:" + head[0][8:].replace(
                                  "\n", ""), text, count=1)
                if not conversation.is_thinking:
                    text = text.replace(EMPTY_THOUGHT, "")
                rendered = render(conversation, trims=trims)
                self.assertEqual(rendered, text)


def render(conversation, trims):
    """Renders as engines do (trims) or as bare Jinja does."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=trims,
                                                lstrip_blocks=trims)
    environment.filters["tojson"] = json.dumps
    messages = [{"role": "system", "content": conversation.system}]
    for message in conversation.messages:
        rendered = {"role": message.role, "content": message.content}
        if message.is_last_turn and conversation.is_thinking:
            rendered["reasoning_content"] = message.thought
        messages.append(rendered)
    tools = [{"function": {
                  "name": tool.name,
                  "parameters": {"properties": dict.fromkeys(tool.arguments)}}}
             for tool in conversation.tools]
    return environment.from_string(read_template()).render(
        messages=messages if conversation.system else messages[1:],
        tools=tools)


if __name__ == "__main__":
    unittest.main()
