"""Programs as bytes: their encoding, their permitted contents, and the checks of bytes from outside."""
