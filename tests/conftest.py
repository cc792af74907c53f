"""Strict in tests: every jaxpr that is made is verified."""
import os

os.environ.setdefault("WEFT_VERIFY_JAXPRS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
