"""Renders chats with the chat template of the model in the folder that is its argument, as mlx_lm.server does.

Each line of the input is a chat, {"messages": [...], "tools": [...], "chat_template_kwargs": {...}}. Each has a line in the output,
{"prompt": "..."}; null is the prompt of a chat that the template refuses.
"""

import json
import os
import sys
from pathlib import Path

answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)  # what libraries print is no answer

from mlx_lm.server import process_message_content
from mlx_lm.utils import load_tokenizer

# Which is AutoTokenizer, and what the server sets by itself, such as enable_thinking
tokenizer = load_tokenizer(Path(sys.argv[1]), {"trust_remote_code": False, "local_files_only": True})

for line in sys.stdin:
    chat = json.loads(line)
    messages = chat["messages"]
    process_message_content(messages)
    try:
        prompt = tokenizer.apply_chat_template(
            messages,
            tools=chat.get("tools"),
            add_generation_prompt=True,
            tokenize=False,
            **chat.get("chat_template_kwargs", {}),
        )
    except Exception:
        prompt = None
    print(json.dumps({"prompt": prompt}), file=answers, flush=True)
