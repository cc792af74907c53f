"""The parts of arrays of keys."""

import pytest
import weft
from weft import random


@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_parts_have_the_shape_of_keys(shape):
    keys = random.key(0) if shape == () else random.split(random.key(0), shape)
    (part,) = keys.addressable_shards
    assert part.data.shape == keys.shape == shape
    assert (random.key_data(part.data) == random.key_data(keys)).all() and part.device == weft.devices()[0]
