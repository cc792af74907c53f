"""Strict in tests: every jaxpr that is made is verified."""
import os

import pytest

os.environ.setdefault("WEFT_VERIFY_JAXPRS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Acceptance programs that need what weft does not have yet. They are run all the same, and one that passes fails the
# suite until it is taken off this list.
NOT_YET = {
    "test_every_documented_name_exists[xla_computation]": "xla_computation",
    "test_every_documented_name_exists[device_put_replicated]": "several devices",
    "test_every_documented_name_exists[device_put_sharded]": "several devices",
    "test_every_documented_name_exists[pmap]": "pmap",
    "test_xla_computation": "xla_computation",
    "test_device_transfers": "several devices",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if "acceptance" in item.nodeid and item.name in NOT_YET:
            item.add_marker(pytest.mark.xfail(reason=NOT_YET[item.name], strict=True))
