"""Training samples: token ids, and how much each token counts in the loss.

Only what the model itself says should count, hence near zero elsewhere
(not zero: a little of it makes the words of requests easier to learn).
The first token of an earlier turn's answer must hardly count either. There
the answer starts without a think block, where in the last turn it starts
with one, and nothing before it tells which; at full weight the model would
learn to skip thinking now and then. It is taught when to think by the last
turn alone.
"""

from dataclasses import dataclass

MAX_TOKENS = 320  # longer conversations are not used
LAST_ANSWER_WEIGHT = 1.0
EARLIER_ANSWER_WEIGHT = 0.5
CONTEXT_WEIGHT = 0.05  # what isn't an answer, and first tokens as above


@dataclass(frozen=True)
class Sample:
    """A conversation's token ids, with a loss weight for each."""

    ids: list
    weights: list

    def __len__(self):
        return len(self.ids)


def make_sample(tokenizer, conversation):
    """Returns the conversation as a sample of any length."""
    text, spans = conversation.render()
    ids, weights, position = [], [], 0
    for span in spans:
        context = tokenizer.encode(text[position:span.start])
        answer = tokenizer.encode(text[span.start:span.end])
        ids += context + answer
        weights += [CONTEXT_WEIGHT] * len(context)
        if span.is_last_turn:
            weights += [LAST_ANSWER_WEIGHT] * len(answer)
        else:
            weights += [CONTEXT_WEIGHT]
            weights += [EARLIER_ANSWER_WEIGHT] * (len(answer) - 1)
        position = span.end
    rest = tokenizer.encode(text[position:])
    return Sample(ids + rest, weights + [CONTEXT_WEIGHT] * len(rest))


def draw_sample(tokenizer, author):
    """Returns the sample of the author's next conversation that fits."""
    while True:
        sample = make_sample(tokenizer, author.write())
        if len(sample) <= MAX_TOKENS:
            return sample


def draw_batch(tokenizer, author, size):
    """Returns samples of similar length, so that little is padded.

    Draws four batches' worth and takes one of the four, cut by length.
    """
    samples = sorted((draw_sample(tokenizer, author) for _ in range(4 * size)),
                     key=len)
    start = author.choose_below(4) * size
    return samples[start:start + size]
