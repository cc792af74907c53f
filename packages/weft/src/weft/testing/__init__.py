"""For those who write backends: `python -m weft.testing.backend PLATFORM` checks one (see docs/backends.md)."""
