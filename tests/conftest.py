"""Strict in tests: every jaxpr that is made is verified. All tests find what they share (`frozen.py`) beside this file."""
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent))

os.environ.setdefault("WEFT_VERIFY_JAXPRS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Programs over several devices run on virtual ones, which must be asked for before the first client is made.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
