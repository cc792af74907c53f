"""The higher-order primitives: those that carry programs. Every transformation sees through them."""
