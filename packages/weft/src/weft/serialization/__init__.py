"""Programs as bytes: their encoding, what they may hold, and checks of what comes in."""
