"""What an exporter says of a program for its page: where it ends up, and what is refused. e2e/ has the pages."""

import json
import re

import pytest
import weft
import weft.numpy as jnp
from weft import export


def program(tree, x):
    return {"scores": x * tree["w"], "best": jnp.argmax(x)}


ARGUMENTS = ({"w": weft.ShapeDtypeStruct((), jnp.float32)}, weft.ShapeDtypeStruct((3,), jnp.float32))


def page(folder, **options):
    """The title, the text below it, and the remarks of the page."""
    export.web(program, *ARGUMENTS, path=folder, **options)
    html = (folder / "program.html").read_text()
    data = json.loads(re.search(r'<script id="program" type="application/json">(.*?)</script>', html)[1])
    assert data["name"] == "program"
    title, below = re.search(r"<h1>(.*?)</h1>(.*?)</div>", html).groups()
    return title, below, data["remarks"]


def test_options_are_kept_by_path(tmp_path):
    title, below, remarks = page(
        tmp_path,
        title="Scores & <more>",
        description='In "three" </script> classes.',
        about={"x": "three </script> numbers"},
        labels=["a", "b", "c"],
        ranges={"tree.w": (0, 2)},
        forms={"x": "numbers"},
    )
    assert title == "Scores &amp; &lt;more&gt;"
    assert below == "<p>In &quot;three&quot; &lt;/script&gt; classes.</p>"
    assert remarks == {
        "x": {"about": "three </script> numbers", "form": "numbers"},
        "tree.w": {"range": [0, 2, None]},
        "result.scores": {"labels": ["a", "b", "c"]},
        "result.best": {"labels": ["a", "b", "c"]},
    }


def test_the_title_is_the_name_and_text_that_looks_like_a_placeholder_stays(tmp_path):
    assert page(tmp_path, title=None) == ("program", "", {})
    assert page(tmp_path, title="DATA", description="TITLE NAME")[:2] == ("DATA", "<p>TITLE NAME</p>")


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"about": {"y": "?"}},
            r"about names 'y', which program does not have; it has tree\.w, x, result\.best, result",
        ),
        ({"about": {"x": 1}}, r"about\['x'\] must be text; got 1"),
        ({"labels": {"result.scores": "abc"}}, None),
        ({"labels": {"result.scores": [1]}}, r"labels\['result.scores'\] must be a sequence of names"),
        ({"labels": []}, "labels must be a sequence of names"),
        ({"ranges": {"tree.w": (1, 1)}}, r"ranges\['tree\.w'\] must be \(low, high\) or \(low, high, step\)"),
        ({"ranges": {"tree.w": (0, 1, 0)}}, r"with low < high and step > 0"),
        ({"ranges": {"tree.w": (0, float("inf"))}}, r"with low < high and step > 0"),
        ({"ranges": {"tree.w": 3}}, r"with low < high and step > 0; got 3"),
        (
            {"forms": {"x": "knob"}},
            r"must be one of slider, number, checkbox, text, drawing, image, numbers; got 'knob'",
        ),
        ({"forms": {"x": "slider"}}, r"forms\['x'\] is 'slider', but an array with axes stands there"),
        ({"forms": {"tree.w": "text"}}, r"forms\['tree\.w'\] is 'text', but an array without axes stands there"),
    ],
)
def test_what_does_not_suit_the_program_is_refused(tmp_path, options, message):
    if message is None:
        assert page(tmp_path, **options)[2]["result.scores"]["labels"] == ["a", "b", "c"]
        return
    with pytest.raises(ValueError, match=message):
        page(tmp_path, **options)
    assert not any(tmp_path.iterdir())


def test_labels_that_fit_nothing_are_refused(tmp_path):
    with pytest.raises(ValueError, match="labels has 2 names, and no output of double has an axis of that length"):
        export.web(lambda x: 2 * x, ARGUMENTS[1], path=tmp_path, name="double", labels=["a", "b"])
