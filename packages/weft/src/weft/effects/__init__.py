"""What a program does beside its results: callbacks, debug prints, barriers, foreign calls."""
