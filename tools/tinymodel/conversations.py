"""Generated conversations: what the model is taught to say.

Each is one to four turns, with or without a system message, tools and
thinking. The behaviours are few and checkable: greet, remember the user's
name, know capitals, count, repeat, call an offered tool with the arguments
the user spells out, and report a tool's result.

`Conversation.render` gives the very text that the chat template makes of
the messages (`template`), plus the spans that are the model's own words.
One rule of the format is learnt, not rendered: only the answers of the last
turn carry a think block. With thinking the block holds the thought; without
it the block is empty and belongs to the prompt, since the template puts it
there when `enable_thinking` is false.
"""

import json
import random
from dataclasses import dataclass, field

from .words import (ARGUMENT_NAMES, CAPITALS, FILE_ENDINGS, NAMES,
                    TOOL_NAMES, WORDS)

LETTERS = "abcdefghijklmnopqrstuvwxyz"
THINKING_SHARE = 0.35
TOOLS_SHARE = 0.5
SYSTEM_SHARE = 0.6
TOOL_TURN_SHARE = 0.7
MAX_TURNS = 4
EMPTY_THOUGHT = "<think>\n\n</think>\n\n"


@dataclass(frozen=True)
class Tool:
    """A tool offered to the model: its name and its arguments' names."""

    name: str
    arguments: tuple

    def signature(self):
        return f"{self.name}({', '.join(self.arguments)})"


@dataclass(frozen=True)
class Message:
    """One message. Thought and is_last_turn matter for answers only."""

    role: str  # "user", "tool" or "assistant"
    content: str
    thought: str = ""
    is_last_turn: bool = False


@dataclass(frozen=True)
class Span:
    """The model's own words in a rendered text, its end mark included."""

    start: int
    end: int
    is_last_turn: bool


@dataclass
class Conversation:
    is_thinking: bool
    tools: list
    system: str
    messages: list = field(default_factory=list)

    def render(self):
        """Returns the conversation's text and the spans of its answers."""
        text, spans = self._render_system(), []
        for message in self.messages:
            if message.role == "assistant":
                prompt, answer = self._render_answer(message)
                start = len(text) + len(prompt)
                text += prompt + answer
                spans.append(Span(start, len(text), message.is_last_turn))
                text += "\n"
            elif message.role == "tool":
                text += ("<|im_start|>user\n<tool_response>\n"
                         f"{message.content}\n</tool_response><|im_end|>\n")
            else:
                text += f"<|im_start|>user\n{message.content}<|im_end|>\n"
        return text, spans

    def _render_system(self):
        lines = [self.system] if self.system else []
        if self.tools:
            lines.append("Tools:")
            lines.extend(tool.signature() for tool in self.tools)
        if not lines:
            return ""
        return "<|im_start|>system\n" + "\n".join(lines) + "<|im_end|>\n"

    def _render_answer(self, message):
        prompt, answer = "<|im_start|>assistant\n", message.content
        if message.is_last_turn and self.is_thinking:
            answer = f"<think>\n{message.thought}\n</think>\n\n{answer}"
        elif message.is_last_turn:
            prompt += EMPTY_THOUGHT
        return prompt, answer + "<|im_end|>"


def render_call(tool_name, arguments):
    """Returns the text by which the model calls a tool."""
    return ('<tool_call>\n{"name": %s, "arguments": %s}\n</tool_call>'
            % (json.dumps(tool_name), json.dumps(arguments)))


class Author:
    """Writes conversations, drawing all chance from one random stream."""

    def __init__(self, seed):
        self._rng = random.Random(seed)
        self._user_name = None  # as told in the conversation being written

    def write(self):
        """Returns a new conversation, which ends in an answer."""
        rng = self._rng
        self._user_name = None
        is_thinking = rng.random() < THINKING_SHARE
        tools = []
        if rng.random() < TOOLS_SHARE:
            tools = [self._tool() for _ in range(rng.randint(1, 6))]
        conversation = Conversation(is_thinking, tools, self._system())
        turns = rng.randint(1, MAX_TURNS)
        for turn in range(turns):
            is_last = turn == turns - 1
            if tools and rng.random() < TOOL_TURN_SHARE:
                conversation.messages += self._tool_turn(tools, is_last)
            else:
                conversation.messages += self._plain_turn(is_last)
        return conversation

    def choose_below(self, count):
        """Returns a random number from 0 to count - 1, for batching."""
        return self._rng.randrange(count)

    def _system(self):
        if self._rng.random() >= SYSTEM_SHARE:
            return ""
        return self._rng.choice([
            "", "You are a helpful assistant.", "You are tinychat.",
            self._phrase(6)])

    # Words and values.

    def _letters(self):
        length = self._rng.randint(2, 8)
        return "".join(self._rng.choice(LETTERS) for _ in range(length))

    def _word(self):
        if self._rng.random() < 0.55:
            return self._rng.choice(WORDS)
        return self._letters()

    def _phrase(self, length):
        return " ".join(self._word() for _ in range(length))

    def _value(self):
        """Returns an argument's value: a number or a text."""
        rng, kind = self._rng, self._rng.random()
        if kind < 0.35:
            return rng.randint(0, rng.choice([9, 99, 999, 9999]))
        if kind < 0.42:
            return self._letters() + "." + rng.choice(FILE_ENDINGS)
        if kind < 0.5:
            return rng.choice(list(CAPITALS.values()))
        return self._phrase(rng.randint(1, 4))

    # Tools.

    def _tool_name(self):
        if self._rng.random() < 0.5:
            return self._rng.choice(TOOL_NAMES)
        return self._letters() + self._rng.choice(
            ["", "_" + self._letters(), "-" + self._letters()])

    def _argument_name(self):
        if self._rng.random() < 0.7:
            return self._rng.choice(ARGUMENT_NAMES)
        return self._letters()

    def _tool(self):
        name = self._tool_name()
        names = [self._argument_name()
                 for _ in range(self._rng.randint(0, 3))]
        return Tool(name, tuple(dict.fromkeys(names)))  # each name once

    def _tool_turn(self, tools, is_last):
        """Returns request, call, result and report."""
        tool = self._rng.choice(tools)
        values = [self._value() for _ in tool.arguments]
        request = self._request(tool, values)
        arguments = dict(zip(tool.arguments, values))
        result = self._result()
        return [
            Message("user", request),
            Message("assistant", render_call(tool.name, arguments),
                    f"I need the tool {tool.name}.", is_last),
            Message("tool", result),
            Message("assistant", "The tool returned: " + result,
                    "The tool gave a result.", is_last),
        ]

    def _request(self, tool, values):
        rng, form = self._rng, self._rng.random()
        if not values:
            return rng.choice(["Call %s.", "Use %s.", "Use the tool %s.",
                               "Use the %s tool."]) % tool.name
        pairs = list(zip(tool.arguments, values))
        if form < 0.5:
            request = rng.choice([
                "Call %s with ", "Use %s with ", "Use the tool %s with ",
                "Use the %s tool with "]) % tool.name
            request += " and ".join(f"{name} {value}" for name, value in pairs)
            return request + rng.choice(["", "."])
        request = rng.choice(["Call %s: ", "Use %s: "]) % tool.name
        return request + ", ".join(f"{name}={value}" for name, value in pairs)

    def _result(self):
        rng = self._rng
        return rng.choice([
            self._phrase(rng.randint(1, 8)),
            str(rng.randint(0, 99999)),
            "Echo: " + self._phrase(3),
            json.dumps({"result": rng.randint(0, 999)}),
            "error: " + self._phrase(2)])

    # Turns without tools.

    def _plain_turn(self, is_last):
        kind = self._rng.random()
        for limit, turn in ((0.18, self._greeting), (0.34, self._introduction),
                            (0.55, self._recall), (0.67, self._capital),
                            (0.80, self._count), (1.0, self._repetition)):
            if kind < limit:
                question, thought, answer = turn()
                return [Message("user", question),
                        Message("assistant", answer, thought, is_last)]
        raise AssertionError("the last limit is 1")

    def _greeting(self):
        greeting = self._rng.choice([
            "Hello", "Hi", "Hey", "Hello!", "Hi!", "Hello there",
            "Good morning", "hello", "hi"])
        return (greeting, "The user greets me. I greet back.",
                "Hello! How can I help you today?")

    def _introduction(self):
        if self._rng.random() < 0.6:
            name = self._rng.choice(NAMES)
        else:
            name = self._letters().capitalize()
        self._user_name = name
        sentence = self._rng.choice([
            "My name is %s.", "I am %s.", "My name is %s", "Call me %s.",
            "Hi, my name is %s."])
        return (sentence % name, f"The user tells me the name {name}.",
                f"Nice to meet you, {name}!")

    def _recall(self):
        question = self._rng.choice([
            "What is my name?", "Who am I?", "Do you know my name?",
            "What's my name?"])
        name = self._user_name
        if name is None:
            return (question, "The user did not tell me a name.",
                    "You have not told me your name yet.")
        return (question, f"The user said the name {name} before.",
                f"Your name is {name}.")

    def _capital(self):
        country = self._rng.choice(list(CAPITALS))
        question = self._rng.choice([
            "What is the capital of %s?", "Capital of %s?",
            "Tell me the capital of %s."]) % country
        answer = f"The capital of {country} is {CAPITALS[country]}."
        return question, answer, answer

    def _count(self):
        last = self._rng.randint(2, 30)
        question = self._rng.choice(
            ["Count to %d.", "Count to %d", "Please count to %d."]) % last
        return (question, f"I count from 1 to {last}.",
                " ".join(str(number) for number in range(1, last + 1)))

    def _repetition(self):
        phrase = self._phrase(self._rng.randint(1, 7))
        request = self._rng.choice(["Say: %s", "Repeat: %s", "Say %s"])
        return request % phrase, "The user wants me to say it.", phrase
