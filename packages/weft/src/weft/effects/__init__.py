"""What a program does besides computing its results: callbacks, debug prints, barriers, foreign calls."""
