# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tokens.py VOCAB IN.txt OUT.npz [LENGTH]: lines `class: sentence` as arrays.

Word pieces are those of BERT's uncased models: text in lower case without
accents, cut at spaces and punctuation; each word is the longest piece of the
vocabulary that it begins with, then the longest `##piece` of the rest, ...
"""
import sys
import unicodedata

import numpy as np


def punctuation(c):
    return (c.isascii() and not c.isalnum()
            or unicodedata.category(c).startswith("P"))


def words(text):
    text = unicodedata.normalize("NFD", text.lower())
    text = "".join(c for c in text if unicodedata.category(c) != "Mn")
    return "".join(f" {c} " if punctuation(c) else c for c in text).split()


def pieces(word, vocabulary):
    found, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        end = next((end for end in range(len(word), start, -1)
                    if prefix + word[start:end] in vocabulary), None)
        if end is None:
            return [vocabulary["[UNK]"]]
        found.append(vocabulary[prefix + word[start:end]])
        start = end
    return found


def encode(sentence, vocabulary):
    inner = [piece for word in words(sentence)
             for piece in pieces(word, vocabulary)]
    return [vocabulary["[CLS]"], *inner, vocabulary["[SEP]"]]


def readVocabulary(path):
    with open(path, encoding="utf-8") as file:
        return {line.rstrip("\n"): i for i, line in enumerate(file)}


def read(path):
    """Pairs of class and sentence, and the classes in order."""
    with open(path, encoding="utf-8") as file:
        lines = [tuple(line.strip().split(": ", 1)) for line in file
                 if line.strip() and not line.startswith("#")]
    return lines, sorted({name for name, _ in lines})


def main(vocab, source, target, length=20):
    vocabulary = readVocabulary(vocab)
    lines, classes = read(source)
    ids = np.full((len(lines), int(length)), vocabulary["[PAD]"], np.int64)
    mask = np.zeros_like(ids)
    for i, (_, sentence) in enumerate(lines):
        tokens = encode(sentence, vocabulary)
        if len(tokens) > int(length):
            sys.exit(f"{len(tokens)} tokens, {length} is the most: {sentence}")
        ids[i, :len(tokens)] = tokens
        mask[i, :len(tokens)] = 1
    labels = np.array([classes.index(name) for name, _ in lines], np.int64)
    np.savez(target, input_ids=ids, attention_mask=mask, labels=labels)
    print(f"{target}: {len(lines)} sentences, {' '.join(classes)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
