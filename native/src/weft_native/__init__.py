"""The XLA backend of weft, on jaxlib alone. It is found through the entry-point group `weft.backends`."""

__version__ = "0.1.0"
