"""For authors of backends: `python -m weft.testing.backend PLATFORM` checks one (see docs/backends.md)."""
