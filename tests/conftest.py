"""Strict in tests: every jaxpr that is made is verified."""
import os

os.environ.setdefault("WEFT_VERIFY_JAXPRS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Programs over several devices run on virtual ones, which must be asked for before the first client is made.
os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")
