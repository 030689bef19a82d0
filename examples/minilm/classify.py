# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""classify.py MODEL.onnx VOCAB IN.txt: the classes that onnxruntime finds for
lines `class: sentence`, each by itself and without padding."""
import sys

import numpy as np
import onnxruntime

from tokens import encode, read, readVocabulary


def main(model, vocab, source):
    vocabulary = readVocabulary(vocab)
    session = onnxruntime.InferenceSession(model)
    lines, classes = read(source)
    right = 0
    for name, sentence in lines:
        ids = np.array([encode(sentence, vocabulary)])
        [logits] = session.run(["logits"], {
            "input_ids": ids, "attention_mask": np.ones_like(ids)})
        found = classes[logits.argmax()]
        right += found == name
        if found != name:
            print(f"{name}, found {found}: {sentence}")
    print(f"{right} of {len(lines)} right")


if __name__ == "__main__":
    main(*sys.argv[1:])
