"""The protocol as docs/protocol.md describes it, frame by frame: what clients in other languages rely on."""

import json

import pytest
import vectors
from weft.serialization.binary import DeserializationError
from weft_remote import protocol as p

KEPT = json.loads(vectors.PATH.read_text())


def test_the_vectors_are_of_this_protocol():
    """They change with its version alone: `python tests/remote/vectors.py` writes them."""
    assert vectors.text() == vectors.PATH.read_text()
    assert KEPT["version"] == p.VERSION


def test_the_document_names_the_messages_of_this_protocol():
    assert vectors.page(vectors.PAGE.read_text()) == vectors.PAGE.read_text()


def test_every_message_has_a_vector():
    assert {type(m) for m in vectors.MESSAGES} == set(p.LANGUAGE.classes.values())


@pytest.mark.parametrize("vector", KEPT["messages"], ids=lambda v: v["message"])
def test_frames_hold_what_the_vectors_say(vector):
    (found,) = p.decode(bytes.fromhex(vector["frame"]))
    assert type(found).__name__ == vector["message"] and vectors.fields(found) == vector["fields"]


@pytest.mark.parametrize("wrong", KEPT["wrong"], ids=lambda w: w["what"])
def test_frames_that_nobody_sends_are_refused(wrong):
    with pytest.raises(DeserializationError):
        list(p.decode(bytes.fromhex(wrong["frame"])))
