"""No test that can't fail: what `assertions.py` and `scripts.py` find in all tests is nothing, and they find what
they are for.
"""

import ast
import collections
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import assertions
import scripts

ROOT = assertions.TESTS.parent
SCRIPTS = sorted(
    [*ROOT.glob("wasm/runtime/test/*.test.ts"), *ROOT.glob("e2e/tests/*.spec.ts"), *ROOT.glob("tools/test/*.test.mjs")]
)
SHARED = sorted([*ROOT.glob("wasm/runtime/test/*.ts"), *ROOT.glob("e2e/fixtures/*.ts")])


def test_no_test_in_python_holds_whatever_happens():
    files = sorted([*assertions.TESTS.rglob("*.py"), *ROOT.glob("tools/web/test_*.py")])
    found = [f"{path.relative_to(ROOT)}:{problem}" for path in files for problem in assertions.findings(path)]
    assert len(files) > 200 and not found, "\n".join(found)


def test_no_test_of_the_page_holds_whatever_happens():
    found = [f"{path.relative_to(ROOT)}:{problem}" for path in SCRIPTS for problem in scripts.findings(path, SHARED)]
    assert len(SCRIPTS) > 10 and not found, "\n".join(found)


def test_what_tests_import_of_one_another_has_one_name():
    """Folders of tests are on the path in the order in which they are collected, so the first of two would be found."""
    own = [path for path in assertions.TESTS.rglob("*.py") if not (path.parent / "__init__.py").exists()]
    homes = collections.Counter(path.stem for path in own)
    imported: dict[str, pathlib.Path] = {}
    for path in assertions.TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name: path for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported[node.module or ""] = path
    assert homes["frozen"] == 1 and "frozen" in imported
    assert not {name: str(path) for name, path in imported.items() if homes[name] > 1}


def test_packages_of_tests_are_not_on_the_path():
    """Their modules would be found by names that other folders have, too."""
    packages = [path.parent for path in assertions.TESTS.rglob("__init__.py")]
    files = [path for folder in packages for path in folder.glob("test_*.py")]
    assert len(files) > 50 and not [str(path) for path in files if "sys.path.insert" in path.read_text()]


HOLDS = "this assertion holds whatever happens"
NOTHING = "test_it asserts nothing"
ENDS = "a failure ends here"
LOOP = "asserts something only in this loop"


@pytest.mark.parametrize(
    "body,problem",
    [
        ("assert x or True", HOLDS),
        ("assert (x, 'message')", HOLDS),
        ("assert not (x == None) or True", HOLDS),
        ("assert x == x", HOLDS),
        ("assert x[0].y <= x[0].y", HOLDS),
        ("assert len(x) >= 0", HOLDS),
        ("assert 'text'", HOLDS),
        ("assert [x]", HOLDS),
        ("assert not ()", HOLDS),
        ("assert lambda: x", HOLDS),
        ("assert x.all", HOLDS),
        ("assert helper", HOLDS),
        ("assert (v for v in x)", HOLDS),
        ("assert 1 == 1", HOLDS),
        ("np.testing.assert_allclose(x, x)", "compares a value with itself"),
        ("f(x)", NOTHING),
        ("helper(x)", NOTHING),
        ("'''Nothing.'''", NOTHING),
        ("x == 1", NOTHING),
        ("try:\n        assert f(x)\n    except ValueError:\n        pass", ENDS),
        ("try:\n        f(x)\n    except Exception:\n        pass\n    assert x", ENDS),
        ("with contextlib.suppress(Exception):\n        assert f(x)", ENDS),
        ("for v in x:\n        try:\n            assert v\n        except:\n            continue", ENDS),
        (
            "try:\n        f(x)\n    except OSError as e:\n        pytest.skip(str(e))\n    assert x",
            "a test that is skipped",
        ),
        ("try:\n        f(x)\n    except OSError as e:\n        assert 'no' in str(e)", "only where an error comes"),
        ("for v in x:\n        assert v", LOOP),
        ("for v in []:\n        assert v", LOOP),
        ("for a, b in zip(x, (1, 2)):\n        assert a == b", LOOP),
        ("for v in [w for w in (1, 2) if w > x]:\n        assert v", LOOP),
        ("for v in range(0):\n        assert v", LOOP),
        ("with pytest.raises(Exception):\n        f(x)", "any error at all"),
    ],
)
def test_what_it_finds(body, problem, tmp_path):
    path = tmp_path / "test_example.py"
    path.write_text(f"def helper(x):\n    return x\n\n\ndef test_it(x):\n    {body}\n")
    found = assertions.findings(path)
    assert any(problem in f for f in found), found


@pytest.mark.parametrize(
    "body",
    [
        "assert f(x) == f(x)",
        "assert x != x",
        "assert x is not None",
        "checks(x)",
        "through(x)",
        "x.apply(checks)",
        "with pytest.raises(ValueError):\n        f(x)",
        "with pytest.raises(Exception) as e:\n        f(x)\n    assert 'no' in str(e)",
        "for v in (1, 2):\n        assert v",
        "for v in x:\n        assert v\n    assert x",
        "for a, b in zip(x, (1, 2), strict=True):\n        assert a == b",
        "try:\n        f(x)\n    except ValueError as e:\n        pytest.fail(str(e))",
        "subprocess.run(x, check=True)",
        "raise AssertionError(x)",
        "failing(x)",
        "for k in range(3):\n        assert x[k]",
        "for v in 'a b'.split():\n        assert v in x",
    ],
)
def test_what_it_leaves(body, tmp_path):
    path = tmp_path / "test_example.py"
    path.write_text(
        "class Wrong(Exception):\n    pass\n\n\ndef checks(x):\n    assert x\n\n\ndef through(x):\n   "
        f" checks(x)\n\n\ndef failing(x):\n    raise Wrong(x)\n\n\ndef test_it(x):\n    {body}\n"
    )
    assert assertions.findings(path) == []


@pytest.mark.parametrize(
    "text,problem",
    [
        ("test('a', () => { f(1); });", "'a' asserts nothing"),
        ("test('a', async () => { assert.ok(true); });", HOLDS),
        ("test('a', () => { expect(1).toBe(1); });", HOLDS),
        ("test('a', () => { assert.equal(x.y, x.y); });", "compares a value with itself"),
        ("test('a', () => { try { assert.ok(f()); } catch {} });", ENDS),
        ("test('a', () => { expect(x).toEqual(x); });", "compares a value with itself"),
    ],
)
def test_what_it_finds_in_scripts(text, problem, tmp_path):
    path = tmp_path / "a.test.ts"
    path.write_text(text)
    found = scripts.findings(path, [])
    assert any(problem in f for f in found), found


@pytest.mark.parametrize(
    "text",
    [
        "test('a', () => { assert.equal(f(1), 2); });",
        "function check(x) { assert.ok(x); }\ntest('a', () => { check(f(1)); });",
        "test('a', async () => { await expect(page).toHaveText('x'); });",
    ],
)
def test_what_it_leaves_in_scripts(text, tmp_path):
    path = tmp_path / "a.test.ts"
    path.write_text(text)
    assert scripts.findings(path, []) == []
