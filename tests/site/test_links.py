"""Links within the documentation lead somewhere: to a page of docs/site, or to one that tools/site/prepare.py makes."""

import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SOURCES = ROOT / "docs" / "site"
PAGES = sorted(SOURCES.rglob("*.md"))
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("prepare", ROOT / "tools/site/prepare.py")
    prepare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prepare)
    target = tmp_path_factory.mktemp("docs") / "source"
    prepare.main(target, whole=True)
    return target


def slug(heading: str) -> str:
    """The anchor of a heading, as MyST makes it."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"[`*]", "", heading).lower()).strip().replace(" ", "-")


def broken(page: pathlib.Path, addresses: list[str]) -> list[str]:
    wrong = []
    for address in addresses:
        if "://" in address:
            continue
        path, _, anchor = address.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.is_file():
            wrong.append(address)
        elif anchor and anchor not in map(slug, re.findall(r"^#+ (.*)$", target.read_text(), re.M)):
            wrong.append(address)
    return wrong


def test_links_of_pages_lead_somewhere(prepared):
    wrong = {}
    for source in PAGES:
        page = prepared / source.relative_to(SOURCES)
        if found := broken(page, LINK.findall(FENCE.sub("", page.read_text()))):
            wrong[str(source.relative_to(ROOT))] = found
    assert not wrong


def test_lists_of_pages_name_pages_that_exist(prepared):
    pages = [prepared / source.relative_to(SOURCES) for source in PAGES]
    named = [
        page.parent / name
        for page in pages
        for block in TREE.findall(page.read_text())
        for name in re.findall(r"^(?!:)(\S+)$", block, re.M)
    ]
    assert named
    assert not [name for name in named if not any(name.with_name(name.name + end).is_file() for end in (".md", ".rst"))]


def test_every_page_is_in_a_list(prepared):
    listed = {prepared / "index.md"}
    for page in prepared.rglob("*.md"):
        for block in TREE.findall(page.read_text()):
            listed |= {(page.parent / f"{name}.md").resolve() for name in re.findall(r"^(?!:)(\S+)$", block, re.M)}
    assert PAGES
    for source in PAGES:
        assert prepared / source.relative_to(SOURCES) in listed, f"no toctree names {source.relative_to(ROOT)}"


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "a.md"
    page.write_text("# One thing\n")
    assert broken(page, ["a.md", "a.md#one-thing", "https://example.org/"]) == []
    assert broken(page, ["b.md", "a.md#other"]) == ["b.md", "a.md#other"]


def test_each_name_has_one_place_in_the_index(prepared):
    """Sphinx warns of a second one, which ends the build."""
    places: dict[str, list[str]] = {}
    for page in [*prepared.glob("reference/*/*.rst"), *prepared.glob("errors/*.rst")]:
        text = page.read_text()
        module = re.search(r"^\.\. currentmodule:: (\S+)$", text, re.M)
        name = re.search(r"^\.\. (?:auto)?\w+:: (\w+)(?:\(\))?$", text[module.end() :], re.M)
        if ":no-index:" not in text:
            places.setdefault(f"{module[1]}.{name[1]}", []).append(page.name)
    assert len(places) > 1000
    assert not {name: pages for name, pages in places.items() if len(pages) > 1}
