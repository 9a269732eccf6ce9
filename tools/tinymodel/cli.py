"""The command line: sample, merges, train, export, mlx, make, show, ask."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from . import gguf, mlx
from .cards import MODELS, TINYDRAFT
from .checkpoint import SHIPPED, Checkpoint
from .conversations import Author
from .family import RECIPES
from .inference import complete
from .shape import Shape, draft_shape
from .tokenizer import Tokenizer, learn_merges

MERGES_SEED = 7
MERGES_TEXTS = 6000
MAX_MERGES = 500


def _sample(options):
    author = Author(options.seed)
    for _ in range(options.count):
        print(author.write().render()[0] + "-" * 8)


def _merges(options):
    author = Author(options.seed)
    texts = (author.write().render()[0] for _ in range(options.texts))
    lines = Tokenizer(learn_merges(texts, options.count)).to_lines()
    options.out.write_text("".join(line + "\n" for line in lines),
                           encoding="utf-8")
    print(f"{options.out}: {len(lines)} merges")


def _train(options):
    try:
        from . import train  # needs PyTorch, which the rest does without
    except ImportError as error:
        raise SystemExit(f"train needs PyTorch: {error}; see README.md")
    if options.merges:
        lines = options.merges.read_text(encoding="utf-8").splitlines()
        tokenizer = Tokenizer.from_lines(lines)
        shape = Shape(vocabulary=len(tokenizer.vocabulary))
        checkpoint = Checkpoint(shape, tokenizer, {})
    else:
        checkpoint = Checkpoint.read(options.start)
        if options.draft:
            shape = draft_shape(checkpoint.shape.vocabulary)
            checkpoint = replace(checkpoint, shape=shape, card=TINYDRAFT)
        if options.draft or options.anew:
            checkpoint.tensors = {}
    settings = train.Settings(options.seconds, options.threads, options.seed,
                              options.peak_rate)
    train.train(checkpoint, options.out, settings,
                lambda line: print(line, flush=True))


def _export(options):
    checkpoint = Checkpoint.read(options.start)
    checkpoint.write(options.out)
    print(f"{options.out}: {options.out.stat().st_size} bytes")


def _mlx(options):
    mlx.write(options.out, Checkpoint.read(options.start), options.bits)
    size = sum(file.stat().st_size for file in options.out.iterdir())
    print(f"{options.out}: {size} bytes")


def _make(options):
    for card, recipe in RECIPES.items():
        path = options.models / card.path.relative_to(MODELS)
        path.parent.mkdir(parents=True, exist_ok=True)
        gguf.write(path, recipe())
        print(f"{path}: {path.stat().st_size} bytes")


def _show(options):
    file = gguf.parse(options.model.read_bytes())
    for key, field in file.fields.items():
        value = field.value
        if field.is_array:
            value = f"{len(value)} values"
        elif key == "tokenizer.chat_template":
            value = "\n" + value
        print(f"{key}: {value}")
    for name, tensor in file.tensors.items():
        kind = "Q4_0 blocks" if tensor.dtype == gguf.Q4_0 else tensor.dtype
        print(f"{name}: {kind} {list(tensor.shape)}")


def _ask(options):
    prompt = f"<|im_start|>user\n{options.text}<|im_end|>\n"
    read = mlx.read if options.model.is_dir() else Checkpoint.read
    print(complete(read(options.model), prompt + "<|im_start|>assistant\n"))


def _parser():
    parser = argparse.ArgumentParser(
        prog="tinymodel", description="Makes the small models.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name, run, summary):
        added = commands.add_parser(name, help=summary, description=summary)
        added.set_defaults(run=run)
        return added

    added = command("sample", _sample, "Print generated conversations.")
    added.add_argument("--count", type=int, default=4, help="how many (4)")
    added.add_argument("--seed", type=int, default=1)

    added = command("merges", _merges, "Learn merges for a new model.")
    added.add_argument("--out", type=Path, required=True, metavar="FILE")
    added.add_argument("--count", type=int, default=MAX_MERGES,
                       help=f"at most so many merges ({MAX_MERGES})")
    added.add_argument("--texts", type=int, default=MERGES_TEXTS,
                       help=f"learn from so many texts ({MERGES_TEXTS})")
    added.add_argument("--seed", type=int, default=MERGES_SEED)

    _add_train(command("train", _train, "Train, and write a GGUF file."))

    added = command("export", _export, "Write a GGUF file anew, with the "
                    "present chat template and metadata.")
    _add_start(added)
    added.add_argument("--out", type=Path, required=True, metavar="GGUF")

    added = command("mlx", _mlx, "Write a folder for mlx_lm.")
    _add_start(added)
    added.add_argument("--out", type=Path, default=mlx.SHIPPED,
                       metavar="FOLDER", help="(the shipped one)")
    added.add_argument("--bits", type=int, choices=(4, 8),
                       help="of each number in a matrix (16)")

    added = command("make", _make, "Write the models that aren't trained.")
    added.add_argument("--models", type=Path, default=MODELS,
                       metavar="FOLDER",
                       help="below this folder (that of the shipped ones)")

    added = command("show", _show, "Print a GGUF file's metadata and tensors.")
    added.add_argument("model", type=Path, nargs="?", default=SHIPPED)

    added = command("ask", _ask, "Let the model answer one message.")
    added.add_argument("text")
    added.add_argument("--model", type=Path, default=SHIPPED,
                       metavar="GGUF|FOLDER")
    return parser


def _add_start(parser):
    parser.add_argument("--from", dest="start", type=Path, default=SHIPPED,
                        metavar="GGUF",
                        help="start from this file (the shipped one)")


def _add_train(parser):
    start = parser.add_mutually_exclusive_group()
    _add_start(start)
    start.add_argument("--merges", type=Path, metavar="FILE",
                       help="train from nothing, with these merges")
    parser.add_argument("--anew", action="store_true",
                        help="train from nothing, with --from's merges")
    parser.add_argument("--draft", action="store_true",
                        help="train a draft model from nothing, with --from's "
                        "merges")
    parser.add_argument("--out", type=Path, required=True, metavar="GGUF")
    parser.add_argument("--seconds", type=float, default=3600,
                        help="train for so long (3600)")
    parser.add_argument("--threads", type=int, default=1,
                        help="processor threads to use (1)")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--peak-rate", type=float, default=1.2e-3,
                        help="highest learning rate (0.0012)")


def main(arguments=None):
    """Runs one command; returns the process's exit code."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (OSError, gguf.FormatError) as error:
        print(f"tinymodel: {error}", file=sys.stderr)
        return 1
    return 0
