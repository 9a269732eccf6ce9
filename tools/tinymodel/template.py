"""The chat template, `chat_template.jinja`, as it stands in the GGUF file.

The model was trained on this format and knows no other. Change what the
template renders only together with `conversations`, and train anew.

What is there for a reason that doesn't show:

- A message's `reasoning_content` is rendered between think tags. An engine
  tries the template on such a message to learn how reasoning is marked; if
  nothing is rendered it never splits reasoning from answers.
- `enable_thinking` false puts an empty think block into the prompt, so that
  the model goes straight to its answer.
- A content may be a text or a list of parts, as in the OpenAI API. The
  texts of the parts are joined by line ends, which is what llama-server
  does before it renders; other engines hand the list to the template. A
  missing content is nothing, rather than the word "None".
- "developer" is another name of "system". Only the first message goes into
  the head, together with the tools; a later one stands where it came. There
  may be no messages at all.
- No line end of the text depends on `trim_blocks`, which engines set and
  bare Jinja doesn't. That is why tools stand in the prompt with nothing
  between them ("Tools:echo(message)now()"): engines have rendered it so all
  along, and it is kept, though `conversations` puts each on a line of its
  own. It makes no difference to the model, which takes a tool's name from
  the request: of 1,000 generated requests at temperature 0 it made 957
  calls right as it is and 958 with the line ends.

The file ends in a line end that is no part of the template.
"""

from pathlib import Path

_PATH = Path(__file__).with_name("chat_template.jinja")


def read_template():
    """Returns the template's text."""
    return _PATH.read_text(encoding="utf-8").removesuffix("\n")
