"""tinymodel: the recipe of the small chat model that is shipped for tests.

The model `lmcaddy/tinychat` lets tests and a first run talk to a real
inference engine, with answers that can be checked, and without a download.
This package makes it: it generates conversations, learns a byte-level BPE
vocabulary from them, trains a llama-like network on the CPU and writes one
GGUF file that holds everything (parameters, merges, chat template).

That GGUF file is the only stored form. `export` reads it back and writes it
anew, and `train --from` goes on training from it, so no other copy of the
parameters or merges is kept.

How the files depend on each other, from the leaves up:

    words          the lists conversations are drawn from
    conversations  messages, and their text as the chat template renders them
    tokenizer      text to token ids and back; learning merges
    samples        token ids with the loss weight of each (no PyTorch)
    shape          the network's dimensions and its tensors
    gguf           the file format, knowing nothing of this model
    template       the chat template
    checkpoint     the model as a file: shape, tokenizer, tensors, metadata
    inference      answers in plain NumPy, to try a checkpoint
    model, train   the network and its training (the only users of PyTorch)
    cli            the command line
"""
