"""Random programs: made by seed, printed as Python, run on every backend in every form and compared with the reference
interpreter.

`PYTHONPATH=tests python -m programs --platform wasm --start 0 --count 1000 --seconds 500` runs some; what fails is
shrunk and printed.
"""
