"""Expressions over symbolic dimensions, by the constraints of their scope, and texts of shapes: what JAX says of them is in symbolic_expected.json."""

# (constraints, expressions over a, b, c; `dmax` and `dmin` are core.max_dim and core.min_dim)
EXPRESSIONS = [
    ((), ["a", "a + b", "b + a", "2*a + 1", "1 + 2*a", "a - b", "-a", "a - 1", "-a + 1", "a*b", "b*a", "a*a", "a**2", "a**2*b", "a*a*b + 3*a*b - 7", "a - a",
          "a*0", "a**0", "pow(a, 2)", "a == a", "a == b", "a == 1", "a != 1", "a == 1.5", "a in (1, 2)", "a in (1, a)", "{a: 1}[a + 0]", "a**-1", "a**1.5", "int(a)",
          "len(range(a))", "float(a)", "a << 1", "abs(a)", "max(a, 1)", "max(a, b)", "sorted([b, a, 1])", "3 - a", "(a + b)*(a - b)", "(a + b)**2"]),
    ((), ["a//2", "a % 2", "(a + 1)//2", "(2*a)//2", "(2*a + 1)//2", "(a*b)//a", "(2*a) % 2", "(4*a + 3) % 4", "a//b", "a % b", "a//-2", "7//a", "7 % a", "divmod(a, 3)",
          "divmod(4*a, 2)", "(a - b)//2", "(a*b + a)//a", "(a*a)//a", "(6*a + 4)//2", "(6*a + 4)//4", "(6*a + 4) % 4", "a//2//3", "(a//2)*b", "a % 2 + b//3",
          "(a % 2)*(a % 2)", "-(a//2)", "a//1", "a % 1", "0//a", "0 % a", "a//a", "a % a", "(a + b)//(a + b)", "1//a", "a % 0", "a//0", "(4*a + b)//4", "(4*a + a % 4)//4",
          "(4*a + b % 4) % 4", "(2*a + 1) % 2", "(2*a - 1)//2", "(2*a - 1) % 2", "(3*a + 2*b)//2", "(3*a + 4*b) % 2", "(a*b + 1)//a", "(a*b + b)//a", "(a + 1)//a",
          "(a*a - 1)//(a - 1)", "(a*a + 3*a + 2)//(a + 1)", "(2*a + 2*b)//(a + b)", "(4*a + 6)//-2", "a//-1", "(5*a + 7)//5", "(5*a - 7)//5", "(-5*a + 7)//5", "(5*a + 7) % 5",
          "(8*a + 4*b + 2)//4", "(2*a + 2*b + 1)//(a + b)", "(a*6)//4", "a*2//(2*b)", "a % -2"]),
    ((), ["a >= 1", "a > 0", "a < 1", "a > 1", "a >= b", "2*a >= a", "a + b >= 2", "a + b > a", "a - b >= 0", "a*b >= 1", "a*b >= a", "a % 2 < 2", "a % 2 >= 0", "a//2 <= a",
          "a % b < b", "(a//2)*2 <= a", "a//2 >= 1", "(a + 1)//2 >= 1", "a//2*2 >= a - 1", "a - a//2 >= 1", "a - 2*(a//2) < 2", "a - b*(a//b) >= 0", "a - b*(a//b) < b",
          "dmax(a, b) >= a", "dmax(a, b) + 1 > b", "dmin(a, b) <= a", "dmax(a - b, 0) <= a", "dmin(a, b) >= 1", "a*a >= a", "a*a >= 1", "-a < 0", "-a*b <= -1",
          "(a + b - 1) >= a", "a + 2*b - 3 >= 0", "a//b >= 0", "-a//2 < 0", "(-a) % 2 >= 0", "3 - a % 3 >= 1", "dmax(0, a - 3) < a", "a//2 < a"]),
    ((), ["dmax(a, b)", "dmax(a, 0)", "dmax(a, 1)", "dmin(a, b)", "dmax(a, a + 1)", "dmax(a - 5, 0)", "dmin(a, 3)", "dmax(b, a)", "dmin(a, b) + 1", "dmax(dmax(a, b), c)",
          "dmax(2*a, 2*b)", "dmax(2, 3)", "dmin(2, 3)"]),
    ((), ["a + b + c", "a*b + a*c + b*c", "a*b**2 + a**2*b + a*b*c + c**3 + b**3", "a//2 + b + a*b", "a//2 + b//2 + a % 2 + dmax(a, b) + dmin(a, b)", "(a//2)*(b//2) + a*b",
          "(a//2)*c*b", "a//2 + a//3", "a//b + b//a", "(a + b)//2 + a//2 + c", "dmax(a, b)*a", "(a % 2)**2 + a**2 + a % 3", "(a//2)**2*b + b**3", "a//2 - b//3 + 4*c - a*7",
          "a*(b//2) + b*(a//2) + (a*b)//3", "a*b*c*(a//2)*(a % 2)*dmax(a, b)*(a//2//3)", "(b - a)//2 + (a - b)//2 + (2*a)//3 + (3*a)//2 + (a + 1)//2 + (a + 2)//2"]),
    (("a >= b",), ["a - b >= 0", "a >= b", "2*a >= 2*b", "a + 1 > b", "2*a >= b", "a + b >= 2*b", "3*a - b >= 2", "b <= a", "dmax(a, b)", "dmax(b, a)", "dmin(a, b)", "a*b >= b",
                   "a//2 >= b//2"]),
    (("a >= 4", "b <= 10"), ["a >= 3", "a > 4", "a - b >= -6", "b <= 10", "b < 11", "a*b >= 4", "dmax(a, 2)", "dmin(b, 12)", "a//4 >= 1", "a % 4 <= 3"]),
    (("mod(a, 2) == 0",), ["a % 2", "(a + 1) % 2", "a//2*2 == a", "a//2*2", "a % 4", "(2*a) % 4", "(a*b) % 2"]),
    (("a == 2*b",), ["a", "a + b", "a == 2*b", "a//2"]),
    (("a == b + 2*c - 1",), ["a", "2*a + b", "a*b", "b*a + a", "a - b", "a - b - 2*c", "a//2", "3*a + c"]),
    (("2*a == b + c",), ["2*a", "4*a", "3*a", "-2*a", "2*a - b", "2*a + 2*b"]),
    (("2*a == b",), ["b", "a//2", "2*a == b", "4*a", "a*2 + 1"]),
    (("a <= b", "b <= c"), ["a <= c", "a <= c + 1", "2*a <= b + c"]),
    (("a + b <= 10",), ["a <= 9", "a <= 8", "a + b <= 10", "a*2 <= 19"]),
    (("max(a, b) == b",), ["dmax(a, b)", "a <= b", "dmax(b, a)"]),
    (("floordiv(a, 2) >= 3",), ["a >= 6", "a//2 >= 3", "a//2 > 3"]),
]
# (text, keyword arguments of symbolic_shape)
SHAPES = [(spec, {}) for spec in (
    "", "a", "a,", "(a, b)", "(a,)", "3, a", "a, _", "a b", "a+", "a**2", "a^2", "a*2", "a/2", "a//2", "a%2", "-a", "-2", "2*(a+1)", "max(a, 2)", "max(a, 2, 3)", "floordiv(a, 2)",
    "foo(a)", "a-1", "a - a", "A_1", "1a", "mod(a, 3)", None, "a;b", "a^b", "a^-1", "_", "...", "0", "a, a", "a*-2", "-2*a", "a + -1", "a - -1", "a*-2*-3", "a*-b", "a^2*-1", "- 2 + a",
    "floordiv(a, -2)", "max(-1, a)")] + [
    ("...", {"like": (2, 3)}), ("a, ...", {"like": (2, 3, 4)}), ("_, b", {"like": (2, 3)}), ("_", {"like": (None,)}), ("a", {"like": (2, 3)}), ("2", {"like": (3,)}),
    ("...", {"like": (2, None)}), ("...,...", {"like": (1, 2)}), ("b, 2*n+1, _", {"constraints": ["b >= 4", "mod(n, 2) == 0"], "like": (None, None, 7)})] + [
    ("a, b", {"constraints": c}) for c in (["a"], ["a > 4 > 2"], ["3 >= 4"], "a >= 4", ["a == 4"], ["a == 2*b"], ["2*a == b"], ["a+b == 4"], ["a + 1 == 4"], ["a == a"], ["a != 4"],
                                           ["a < 4"], ["4 <= a"], ["a >= 4 and a <= 5"])]


def outcome(function) -> str:
    """A result as text, or the name of the error's class."""
    try:
        return repr(function())
    except Exception as e:      # which one is the result
        return f"!{type(e).__name__}"


def outcomes(symbolic_shape, scope_class, max_dim, min_dim) -> dict:
    """What an implementation says of all cases."""
    found: dict = {}
    for n, (constraints, expressions) in enumerate(EXPRESSIONS):
        a, b, c = symbolic_shape("a, b, c", scope=scope_class(constraints))
        names = {"a": a, "b": b, "c": c, "dmax": max_dim, "dmin": min_dim}
        found[f"{n}: {', '.join(constraints)}"] = {e: outcome(lambda e=e: eval(e, dict(names))) for e in expressions}
    found["shapes"] = {f"{spec!r} {kw}": outcome(lambda spec=spec, kw=kw: symbolic_shape(spec, **kw)) for spec, kw in SHAPES}
    return found
