"""Writes digits.bin, the handwritten digits that scikit-learn ships, in the form that digits.py reads."""

import os

import numpy as np
from sklearn.datasets import load_digits

if __name__ == "__main__":
    digits = load_digits()
    rows = np.concatenate([digits.data, digits.target[:, None]], axis=1).astype(np.uint8)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.bin"), "wb") as f:
        f.write(rows.tobytes())
