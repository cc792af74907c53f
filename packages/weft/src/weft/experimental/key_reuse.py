"""weft.experimental.key_reuse: errors where a random key is consumed twice.

The option `jax_debug_key_reuse`, or `weft.debug_key_reuse()` around a block, turns the check on for new-style keys, in
eager code and in traced programs.

Example:
    >>> import weft
    >>> key = weft.random.key(0)
    >>> with weft.debug_key_reuse():
    ...     x = weft.random.normal(key)
    ...     y = weft.random.normal(key)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    weft.errors.KeyReuseError: Previously-consumed key passed to normal: argument 0 was consumed by normal at …
"""
