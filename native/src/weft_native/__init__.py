"""The XLA backend of weft, on jaxlib alone. It is found through the entry-point group `weft.backends`."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # read once, when jaxlib's library loads

__version__ = "0.1.0"
