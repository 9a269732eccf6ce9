"""tinymodel: the recipes of the small models that are shipped for tests.

The model `lmcaddy/tinychat` lets tests and a first run talk to a real
inference engine, with answers that can be checked, and without a download.
This package makes it: it generates conversations, learns a byte-level BPE
vocabulary from them, trains a llama-like network on the CPU and writes one
GGUF file that holds everything (parameters, merges, chat template).

That GGUF file is where everything is read from. `export` reads it back and
writes it anew, `train --from` goes on training from it, and `mlx` makes the
same model for another engine.

Its siblings are for what one chat model can't show: a draft model, trained
likewise, and models whose parameters are random or set by hand, which are
made anew, bit for bit, by `make`.

How the files depend on each other, from the leaves up:

    words          the lists conversations are drawn from
    conversations  messages, and their text as the chat template renders them
    tokenizer      text to token ids and back; learning merges
    samples        token ids with the loss weight of each (no PyTorch)
    shape          the network's dimensions and its tensors
    gguf, q4       the file format, knowing nothing of these models
    cards          what the files say of themselves, and where they lie
    template       the chat template
    checkpoint     a trained model as a file: shape, tokenizer, tensors
    safetensors    another file format, likewise
    affine         numbers of a few bits in it
    mlx            a trained model as a folder for mlx_lm
    inference      answers in plain NumPy, to try a checkpoint
    model, train   the network and its training (the only users of PyTorch)

    noise          random parameters, the same everywhere
    moe            the mixture of experts
    vision         the model that sees, and its eye
    english        ordinary words
    wordpiece      those words as the vocabulary of
    bert           what embedding models and rerankers share
    embedder       the embedding model
    reranker       the reranker
    bert_inference what those two say, in plain NumPy
    family         the models that `make` makes

    cli            the command line
"""
