/** The editor alone, with the real index: what Python would answer is answered by the tests. */
import type { Locator, Page } from "@playwright/test";
import type { EditorPage } from "../fixtures/editor_page.js";
import { expect, test as base } from "../fixtures/site.js";

declare const shared: EditorPage;

class Cells {
  readonly logged: string[] = [];

  constructor(readonly page: Page) {
    page.on("console", (message) => this.logged.push(message.text()));
    page.on("pageerror", (error) => this.logged.push(String(error)));
  }

  /** Opens the page with a cell for each source; `|` in the last one stands where the cursor is. */
  async open(...sources: string[]): Promise<void> {
    const cursor = sources.at(-1)!.indexOf("|");
    const texts = sources.map((source, i) => (i === sources.length - 1 ? source.replace("|", "") : source));
    await this.page.evaluate((all) => all.forEach((text) => shared.make({ text })), texts);
    const last = texts.at(-1)!;
    await this.place(texts.length - 1, cursor < 0 ? last.length : cursor);
  }

  async place(cell: number, pos: number): Promise<void> {
    await this.page.evaluate(
      ([cell, pos]) => {
        const { view } = shared.editors[cell!]!;
        view.dispatch({ selection: { anchor: pos! } });
        view.focus();
      },
      [cell, pos],
    );
  }

  async text(cell = 0): Promise<string> {
    return this.page.evaluate((at) => shared.editors[at]!.text(), cell);
  }

  async answer(topic: string, value: unknown): Promise<void> {
    await this.page.evaluate(([topic, value]) => void (shared.answers[topic as string] = value), [topic, value]);
  }

  async events(): Promise<unknown[][]> {
    return this.page.evaluate(() => shared.events as unknown[][]);
  }

  type(text: string): Promise<void> {
    return this.page.keyboard.type(text, { delay: 15 });
  }

  /** Takes the completion that is offered, once the list takes keys: a moment after it has opened. */
  async accept(): Promise<void> {
    await this.page.waitForTimeout(100);
    await this.press("Enter");
  }

  press(key: string): Promise<void> {
    return this.page.keyboard.press(key);
  }

  get offered(): Locator {
    return this.page.locator(".cm-tooltip-autocomplete li .cm-completionLabel");
  }

  get info(): Locator {
    return this.page.locator(".cm-completionInfo");
  }

  get help(): Locator {
    return this.page.locator(".weft-help");
  }

  get description(): Locator {
    return this.page.locator(".cm-tooltip [role=tooltip]");
  }

  /** Rests the pointer on the n-th occurrence of a word. */
  async hover(word: string, occurrence = 0): Promise<void> {
    await this.page.mouse.move(5, 5);
    const { x, y } = await this.spot(word, occurrence);
    await this.page.mouse.move(x - 2, y);
    await this.page.mouse.move(x, y);
  }

  async spot(word: string, occurrence = 0, cell = 0): Promise<{ x: number; y: number }> {
    return this.page.evaluate(
      ([word, occurrence, cell]) => {
        const { view } = shared.editors[cell as number]!;
        let pos = -1;
        for (let i = 0; i <= (occurrence as number); i++)
          pos = view.state.doc.toString().indexOf(word as string, pos + 1);
        const { left, top, bottom } = view.coordsAtPos(pos + 1)!;
        return { x: left, y: (top + bottom) / 2 };
      },
      [word, occurrence, cell],
    );
  }
}

const test = base.extend<{ cells: Cells }>({
  cells: async ({ page, editorPage }, use) => {
    await page.goto(editorPage);
    const cells = new Cells(page);
    await use(cells);
    expect(cells.logged).toEqual([]);
  },
});

test.describe("completion", () => {
  test("offers a module's names with signatures, and documents the one that is chosen", async ({ cells }) => {
    await cells.open("import jax.numpy as jnp\n|");
    await cells.type("jnp.cums");
    await expect(cells.offered.first()).toHaveText("cumsum");
    await expect(cells.page.locator(".cm-completionDetail").first()).toContainText("(a, axis=");
    await expect(cells.info).toContainText("axis: int | None = None");
    await expect(cells.info).toContainText("-> Array");
    await cells.accept();
    expect(await cells.text()).toBe("import jax.numpy as jnp\njnp.cumsum");
  });

  for (const [imports, expression, name] of [
    ["import jax", "jax.nn.rel", "relu"],
    ["import weft.numpy as np", "np.linalg.sv", "svd"],
    ["from jax import lax", "lax.sca", "scan"],
    ["from jax.scipy import stats as st", "st.norm.logp", "logpdf"],
    ["from jax import random as jr", "jr.norm", "normal"],
    ["import math as m", "m.fact", "factorial"],
    ["from os import path", "path.exi", "exists"],
    ["import numpy as np", "np.linsp", "linspace"],
    ["from jax.numpy import *", "arctan", "arctan2"],
    ["import jax", "jax.tree.ma", "map"],
    ["import jax", "jax.config.upd", "update"],
  ]) {
    test(`resolves ${imports}: ${expression}`, async ({ cells }) => {
      await cells.open(`${imports}\n|`);
      await cells.type(expression!);
      await expect(cells.offered.filter({ hasText: new RegExp(`^${name}$`) })).toHaveCount(1);
    });
  }

  for (const [line, name] of [
    ["import jax.nu", "numpy"],
    ["from jax import gra", "grad"],
    ["from jax.numpy.linalg import cho", "cholesky"],
    ["import func", "functools"],
    ["import collections.a", "abc"],
    ["from jax.experimental import che", "checkify"],
  ]) {
    test(`completes ${line}`, async ({ cells }) => {
      await cells.open("|");
      await cells.type(line!);
      await expect(cells.offered.filter({ hasText: new RegExp(`^${name}$`) })).toHaveCount(1);
    });
  }

  for (const [source, typed, name] of [
    ["x = jnp.ones((3, 4))\n|", "x.resh", "reshape"],
    ["x = jnp.ones(3) * 2 + 1\n|", "(x @ x).su", "sum"],
    ["x = jnp.arange(3)\n|", "x.at[0].mul", "multiply"],
    ["q, r = jnp.linalg.qr(jnp.eye(3))\n|", "r.diag", "diagonal"],
    ["u, s, vt = jnp.linalg.svd(jnp.eye(3))\n|", "s.ma", "max"],
    ["f = jax.jit(lambda a: jnp.sin(a))\ny = f(1.0)\n|", "y.ast", "astype"],
    ["@jax.jit\ndef g(a: jax.Array):\n    return a.T\nfor row in g(3):\n    |", "row.fla", "flatten"],
    ["def g(a: jax.Array):\n    |", "a.sha", "shape"],
    ["s = 'abc'\n|", "s.upp", "upper"],
    ["class A:\n    size = 1\n    def go(self):\n        self.width = 2\n        |", "self.wid", "width"],
    ["class A:\n    size = 1\n    def go(self): return 1\na = A()\n|", "a.g", "go"],
    ["v, g = jax.value_and_grad(jnp.sum)(jnp.ones(3))\n|", "g.tolis", "tolist"],
  ]) {
    test(`knows what ${JSON.stringify(source!.slice(0, 40))} is: ${typed}`, async ({ cells }) => {
      await cells.open(`import jax, jax.numpy as jnp\n${source}`);
      await cells.type(typed!);
      await expect(cells.offered.filter({ hasText: new RegExp(`^${name}$`) })).toHaveCount(1);
    });
  }

  test("offers the names that code sees where it stands, and no others", async ({ cells }) => {
    await cells.open("alpha_one = 1\ndef f(alpha_two):\n    alpha_three = 2\n    |\ndef g(alpha_four): pass\n");
    await cells.type("alpha_");
    await expect(cells.offered).toHaveText(["alpha_three", "alpha_two", "alpha_one"]);
  });

  test("offers keyword arguments, words of the language, and builtins", async ({ cells }) => {
    await cells.open("import jax.numpy as jnp\n|");
    await cells.type("jnp.sum(1, keep");
    await expect(cells.offered.first()).toHaveText("keepdims=");
    await cells.accept();
    await cells.type("True)\nenum");
    await expect(cells.offered.first()).toHaveText("enumerate");
    await cells.press("Escape");
    await cells.press("Home");
    await cells.press("Shift+End");
    await cells.type("nonl");
    await expect(cells.offered.first()).toHaveText("nonlocal");
  });

  test("knows what earlier cells import and define", async ({ cells }) => {
    await cells.open("import jax.numpy as jnp\nparams = jnp.ones(3)\n", "|");
    await cells.type("para");
    await expect(cells.offered.first()).toHaveText("params");
    await cells.accept();
    await cells.type(".cump");
    await expect(cells.offered.first()).toHaveText("cumprod");
  });

  test("asks Python for what the text does not tell", async ({ cells }) => {
    await cells.answer("complete", {
      names: [{ name: "learning_rate", kind: "variable", value: "0.1" }],
      keys: [],
    });
    await cells.open("import optax\nstate = optax.adam(0.1)\n|");
    await cells.type("state.lear");
    await expect(cells.offered).toHaveText(["learning_rate"]);
    expect(await cells.events()).toContainEqual(["ask", "complete", { path: [{ name: "state" }] }]);
  });

  test("offers the keys of dictionaries", async ({ cells }) => {
    await cells.answer("complete", { names: [], keys: ["weights", "bias"] });
    await cells.open("params = load()\nparams[|]");
    await cells.type('"');
    await cells.press("Control+Space");
    await expect(cells.offered).toHaveText(["bias", "weights"]);
    await cells.accept();
    expect(await cells.text()).toContain('params["bias"]');
  });

  test("stays silent in strings, comments and new names", async ({ cells }) => {
    await cells.open("|");
    for (const text of ["# prin", "'prin", "def prin", "x = 12.", "f(lambda prin"]) {
      await cells.type(text);
      await cells.page.waitForTimeout(300);
      await expect(cells.offered, text).toHaveCount(0);
      await cells.press("Control+a");
      await cells.press("Delete");
    }
  });

  test("Enter ends a line whose last word is whole, and takes nothing that only resembles it", async ({ cells }) => {
    await cells.open("xs = 1\nxsum = 2\n|");
    for (const line of ["xs", "late", "jnp = xs", "while"]) {
      await cells.type(line);
      await cells.page.waitForTimeout(300);
      await cells.press("Enter");
    }
    expect((await cells.text()).split("\n").map((line) => line.trim())).toEqual([
      "xs = 1",
      "xsum = 2",
      "xs",
      "late",
      "jnp = xs",
      "while",
      "",
    ]);
  });

  test("Tab completes after a name, and indents elsewhere", async ({ cells }) => {
    await cells.open("|");
    await cells.press("Tab");
    expect(await cells.text()).toBe("    ");
    await cells.type("enumera");
    await cells.press("Escape");
    await cells.press("Tab");
    await expect(cells.offered.first()).toHaveText("enumerate");
    await cells.page.waitForTimeout(100);
    await cells.press("Tab");
    expect(await cells.text()).toBe("    enumerate");
  });

  test("works without the index: the program's own names and the words of the language", async ({ cells }) => {
    await cells.page.evaluate(() =>
      shared.make({ text: "variable = 1\n", index: () => Promise.reject(new Error("offline")) }),
    );
    await cells.place(0, 13);
    await cells.type("vari");
    await expect(cells.offered).toHaveText(["variable"]);
    await cells.accept();
    await cells.type("\nwhil");
    await expect(cells.offered).toHaveText(["while"]);
  });
});

test.describe("signature help", () => {
  test("follows the arguments", async ({ cells }) => {
    await cells.open("import jax\n|");
    await cells.type("jax.vmap(");
    const current = cells.help.locator(".weft-current");
    await expect(current).toContainText("fun:");
    await cells.type("f, ");
    await expect(current).toContainText("in_axes:");
    await expect(cells.help).toContainText("for each argument the axis to map over");
    await cells.type("out_axes=");
    await expect(current).toContainText("out_axes:");
    await cells.press("Escape");
    await cells.press("Escape");
    await expect(cells.help).toHaveCount(0);
    await cells.press("Control+Shift+Space");
    await expect(current).toContainText("out_axes:");
  });

  test("goes when the call ends, and comes back to the one around", async ({ cells }) => {
    await cells.open("import jax.numpy as jnp\n|");
    await cells.type("jnp.where(jnp.sin(");
    await expect(cells.help).toContainText("jnp.sin(");
    await cells.type("1");
    await cells.press("ArrowRight");
    await cells.type(", ");
    await expect(cells.help).toContainText("jnp.where(");
    await cells.press("ArrowRight");
    await expect(cells.help).toHaveCount(0);
  });

  test("knows one's own functions and classes, also when they are transformed", async ({ cells }) => {
    await cells.open(
      'import jax\ndef loss(params, x, *, scale: float = 1.0):\n    """The loss of a batch."""\n' +
        "step = jax.jit(jax.grad(loss))\nclass A:\n    def __init__(self, size, depth): pass\n|",
    );
    await cells.type("step(1, ");
    await expect(cells.help.locator(".weft-current")).toHaveText("x");
    await expect(cells.help).toContainText("scale: float = 1.0");
    await expect(cells.help).toContainText("The loss of a batch.");
    await cells.press("End");
    await cells.type("\nA(3, ");
    await expect(cells.help.locator(".weft-current")).toHaveText("depth");
  });

  test("asks Python where the text does not tell", async ({ cells }) => {
    await cells.answer("signature", { name: "adam", kind: "function", signature: "(rate, b1=0.9)", doc: "Adam." });
    await cells.open("import optax\n|");
    await cells.type("optax.adam(0.1, ");
    await expect(cells.help.locator(".weft-current")).toHaveText("b1=0.9");
  });
});

test.describe("hover", () => {
  test("shows documentation with sections and examples in colours", async ({ cells }) => {
    await cells.open("import jax\nf = jax.vmap(jax.numpy.dot)\n");
    await cells.hover("vmap");
    await expect(cells.description).toContainText("fun over an additional axis of its arguments.");
    await expect(cells.description.locator("h4").first()).toHaveText("Args");
    await expect(cells.description.locator("dt").first()).toHaveText("fun");
    await expect(cells.description.locator(".weft-example")).toContainText(">>> weft.vmap(");
  });

  test("shows shapes after a run, and what a name is before", async ({ cells }) => {
    await cells.open("import jax.numpy as jnp\nx = jnp.ones((3, 4))\nparams = load()\n");
    await cells.hover("x =");
    await expect(cells.description).toHaveText("x: Array");
    await cells.answer("shapes", { x: "f32[3,4]", params: "{'w': f32[784,10]}" });
    await cells.hover("params");
    await expect(cells.description).toHaveText("params: {'w': f32[784,10]}");
    await cells.hover("x =");
    await expect(cells.description).toHaveText("x: f32[3,4]");
    expect(await cells.events()).toContainEqual(["ask", "shapes", { names: ["x"] }]);
  });

  test("does not show a global's shape for a function's own name", async ({ cells }) => {
    await cells.answer("shapes", { x: "f32[3,4]" });
    await cells.open("x = 1\ndef f(x):\n    return x\n");
    await cells.hover("x", 2);
    await expect(cells.description).toHaveText("parameter x");
  });

  test("shows what a keyword argument means, and members of arrays", async ({ cells }) => {
    await cells.open("import jax, jax.numpy as jnp\njax.vmap(f, in_axes=0)\njnp.ones(3).sum()\n");
    await cells.hover("in_axes");
    await expect(cells.description).toContainText("for each argument the axis to map over");
    await cells.hover("sum");
    await expect(cells.description).toContainText("sum(axis: Axis = None");
  });

  test("is asked for by the keyboard", async ({ cells }) => {
    await cells.open("import jax\njax.gr|ad\n");
    await cells.press("Control+k");
    await cells.press("Control+i");
    await expect(cells.description).toContainText("grad(fun:");
    await cells.press("Escape");
    await expect(cells.description).toHaveCount(0);
  });
});

test.describe("definitions", () => {
  const line = (cells: Cells, cell = 0) =>
    cells.page.evaluate((at) => {
      const { state } = shared.editors[at]!.view;
      return state.doc.lineAt(state.selection.main.head).text;
    }, cell);

  test("F12 goes to what a name is defined by, in its scope", async ({ cells }) => {
    await cells.open("x = 1\ndef f(x):\n    y = x\n    return y + |x\nx = 2\n");
    await cells.press("F12");
    await expect.poll(() => line(cells)).toBe("def f(x):");
  });

  test("goes to an earlier cell", async ({ cells }) => {
    await cells.open("import jax\ndef step(x):\n    return x\n", "y = st|ep(1)\n");
    await cells.press("F12");
    await expect.poll(() => line(cells, 0)).toBe("def step(x):");
    expect(await cells.page.evaluate(() => shared.editors[0]!.view.hasFocus)).toBe(true);
  });

  for (const [source, module, start] of [
    ["import jax.numpy as jnp\njnp.cum|sum(1)", "weft.numpy.", "def cumsum("],
    ["from jax import vm|ap", "weft.api.vmap", "def vmap("],
    ["import jax.numpy as jnp\njnp.ones(3).at[0].se|t(1)", "weft.numpy.updates", "    def set("],
  ]) {
    test(`opens weft's source: ${source!.split("\n").pop()}`, async ({ cells }) => {
      await cells.open(source!);
      await cells.press("F12");
      await expect.poll(async () => (await cells.events()).find(([kind]) => kind === "source")).toBeTruthy();
      const found = (await cells.events()).find(([kind]) => kind === "source")!;
      expect(found[1]).toContain(module);
      expect(found[3]).toContain(start);
    });
  }

  test("opens the source that Python has read, and says where there is none", async ({ cells }) => {
    await cells.open("import optax\noptax.ad|am(1)");
    await cells.press("F12");
    await expect(cells.page.locator(".weft-note")).toHaveText("The source of adam is not here.");
    await cells.answer("definition", { module: "optax._src.alias", line: 2, text: "import x\ndef adam():\n" });
    await cells.press("F12");
    await expect.poll(() => cells.events()).toContainEqual(["source", "optax._src.alias", 2, "def adam():"]);
  });

  test("Mod-click follows, and leaves one cursor", async ({ cells }) => {
    await cells.open("def step(x):\n    return x\ny = step(1)\n");
    const { x, y } = await cells.spot("step", 1);
    await cells.page.keyboard.down("Control");
    await cells.page.mouse.click(x, y);
    await cells.page.keyboard.up("Control");
    await expect.poll(() => line(cells)).toBe("def step(x):");
    expect(await cells.page.evaluate(() => shared.editors[0]!.view.state.selection.ranges.length)).toBe(1);
  });
});

test.describe("renaming", () => {
  async function rename(cells: Cells, name: string): Promise<void> {
    await cells.press("F2");
    await expect(cells.page.locator(".weft-rename input")).toBeFocused();
    await cells.type(name);
    await cells.press("Enter");
  }

  test("changes a name in its scope alone", async ({ cells }) => {
    await cells.open(
      'x = 1\ndef f(x, y=x):\n    """x"""\n    g = lambda x: x\n    return [|x for _ in y] + h(x=x)\nprint(x, f"{x}")\n',
    );
    await rename(cells, "value");
    expect(await cells.text()).toBe(
      'x = 1\ndef f(value, y=x):\n    """x"""\n    g = lambda x: x\n' +
        '    return [value for _ in y] + h(x=value)\nprint(x, f"{x}")\n',
    );
    await cells.press("Control+z");
    expect(await cells.text()).toContain("def f(x, y=x)");
  });

  test("changes a global in all cells", async ({ cells }) => {
    await cells.open("rate = 0.1\n", "def f():\n    return rate * 2\nra|te += 1\n");
    await rename(cells, "speed");
    expect(await cells.text(0)).toBe("speed = 0.1\n");
    expect(await cells.text(1)).toBe("def f():\n    return speed * 2\nspeed += 1\n");
  });

  test("changes a global from a cell that only uses it", async ({ cells }) => {
    await cells.open("rate = 0.1\n", "def f(rate): return rate\nprint(ra|te, [rate for _ in f])\n");
    await rename(cells, "speed");
    expect(await cells.text(0)).toBe("speed = 0.1\n");
    expect(await cells.text(1)).toBe("def f(rate): return rate\nprint(speed, [speed for _ in f])\n");
  });

  test("keeps what is imported", async ({ cells }) => {
    await cells.open("from jax import grad\nimport jax.numpy as jnp\ng|rad(jnp.sin)\n");
    await rename(cells, "D");
    expect(await cells.text()).toBe("from jax import grad as D\nimport jax.numpy as jnp\nD(jnp.sin)\n");
  });

  test("refuses names that are taken or are none", async ({ cells }) => {
    await cells.open("a = 1\nb = |a\n");
    await rename(cells, "b");
    await expect(cells.page.locator(".weft-rename-message")).toHaveText("b is the name of something else here.");
    await cells.press("Control+a");
    await cells.type("2x");
    await cells.press("Enter");
    await expect(cells.page.locator(".weft-rename-message")).toContainText("starts with no digit");
    await cells.press("Escape");
    await expect(cells.page.locator(".weft-rename")).toHaveCount(0);
    expect(await cells.text()).toBe("a = 1\nb = a\n");
    await cells.type("c");
    expect(await cells.text()).toContain("c");
  });
});

test.describe("undefined names", () => {
  const marked = (cells: Cells) => cells.page.locator(".cm-lintRange-error");

  test("are marked as one types, and the usual import is offered", async ({ cells }) => {
    await cells.open('"""About."""\nimport jax\n\n|');
    await cells.type("y = jnp.sin(jax.numpy.pi)\nprint(y, len([]), __name__, await_me)\n");
    await expect(marked(cells)).toHaveText(["jnp", "await_me"]);
    await marked(cells).first().hover();
    await expect(cells.page.locator(".cm-diagnostic")).toContainText("Nothing defines jnp");
    await cells.page.getByRole("button", { name: "Add “import jax.numpy as jnp”" }).click();
    expect(await cells.text()).toContain("import jax\nimport jax.numpy as jnp\n");
    await expect(marked(cells)).toHaveText(["await_me"]);
  });

  test("not those of earlier cells, of star imports, of a run, or where the text is broken", async ({ cells }) => {
    await cells.answer("complete", { names: [{ name: "made_by_exec", kind: "variable" }] });
    await cells.open(
      "import jax\ndef first(): return later\nlater = 1\n",
      "from jax.numpy import *\nfirst(jax, sin(1), made_by_exec)\nawait first()\n" +
        "with open(jax) as (broken, two):\n    pass\nbroken + two\nmissing\n|",
    );
    await expect(marked(cells)).toHaveText(["missing"]);
  });

  test("and names that are used before they are defined", async ({ cells }) => {
    await cells.open("print(total)\ntotal = 1\ndef f():\n    return helper()\ndef helper(): pass\n|");
    await expect(marked(cells)).toHaveText(["total"]);
    await marked(cells).hover();
    await expect(cells.page.locator(".cm-diagnostic")).toContainText("total is used before line 2 defines it");
  });

  test("not the name that is being typed", async ({ cells }) => {
    await cells.open("|");
    await cells.type("undefin");
    await cells.page.waitForTimeout(900);
    await expect(marked(cells)).toHaveCount(0);
    await cells.press("Escape");
    await cells.type("ed\n");
    await expect(marked(cells)).toHaveText(["undefined"]);
  });
});

test.describe("editing", () => {
  test("formats as ruff does, and fetches it only then", async ({ cells }) => {
    const asked: string[] = [];
    cells.page.on("request", (request) => asked.push(request.url()));
    await cells.open("import jax\nx   = {'a':1,\n   'b': [1,2]}\ndef f( a,b ): return a+b|\n");
    expect(asked.filter((url) => url.endsWith(".wasm"))).toEqual([]);
    await cells.press("Shift+Alt+f");
    await expect
      .poll(() => cells.text())
      .toBe('import jax\n\nx = {"a": 1, "b": [1, 2]}\n\n\ndef f(a, b):\n    return a + b\n');
    expect(asked.filter((url) => url.endsWith(".wasm"))).toHaveLength(1);
    await cells.press("Control+z");
    expect(await cells.text()).toContain("x   = {'a':1,");
  });

  test("says what keeps it from formatting, and changes nothing", async ({ cells }) => {
    await cells.open("x = (1,\n|");
    await cells.press("Shift+Alt+f");
    await expect(cells.page.locator(".weft-note")).toContainText(/expected/i);
    expect(await cells.text()).toBe("x = (1,\n");
  });

  test("says that the formatter can't be fetched, and typing goes on", async ({ cells }) => {
    await cells.page.route("**/*.wasm", (route) => route.abort());
    await cells.open("x  = 1\n|");
    await cells.press("Shift+Alt+f");
    await expect(cells.page.locator(".weft-note")).toContainText("The formatter can't be fetched");
    await cells.type("y");
    expect(await cells.text()).toBe("x  = 1\ny");
    cells.logged.splice(0); // the browser logs requests that fail
  });

  test("indents by four, comments, and closes brackets", async ({ cells }) => {
    await cells.open("|");
    await cells.type("def f(a");
    expect(await cells.text()).toBe("def f(a)");
    await cells.press("End");
    await cells.type(":\nreturn 1");
    expect(await cells.text()).toBe("def f(a):\n    return 1");
    await cells.press("Control+/");
    expect(await cells.text()).toBe("def f(a):\n    # return 1");
    await cells.press("Shift+Tab");
    expect(await cells.text()).toBe("def f(a):\n# return 1");
  });

  test("runs by Mod-Enter and Shift-Enter", async ({ cells }) => {
    await cells.open("x = 1|");
    await cells.press("Control+Enter");
    await cells.press("Shift+Enter");
    expect(await cells.events()).toEqual([
      ["run", "stay"],
      ["run", "advance"],
    ]);
    expect(await cells.text()).toBe("x = 1");
  });

  test("finds and replaces", async ({ cells }) => {
    await cells.open("alpha = 1\nbeta = alpha\n|");
    await cells.press("Control+f");
    await cells.type("alpha");
    await expect(cells.page.locator(".cm-searchMatch")).toHaveCount(2);
    await cells.page.getByRole("textbox", { name: "Replace" }).fill("gamma");
    await cells.page.getByRole("button", { name: "replace all" }).click();
    expect(await cells.text()).toBe("gamma = 1\nbeta = gamma\n");
    await cells.press("Escape");
    await expect(cells.page.locator(".cm-search")).toHaveCount(0);
  });

  test("Escape, then Tab, leaves the editor", async ({ cells }) => {
    await cells.open("x = 1|");
    await cells.page.evaluate(() => document.querySelector("main")!.append(document.createElement("button")));
    await cells.press("Escape");
    await cells.press("Tab");
    await expect(cells.page.locator("main > button")).toBeFocused();
    expect(await cells.text()).toBe("x = 1");
  });

  test("keeps line numbers above code that is scrolled sideways", async ({ cells }) => {
    await cells.open(`x = "${"long ".repeat(60)}"|`);
    const scroller = cells.page.locator(".cm-scroller");
    expect(await scroller.evaluate((element) => (element.scrollLeft = 300))).toBe(300);
    const box = (await cells.page.locator(".cm-lineNumbers .cm-gutterElement").nth(1).boundingBox())!;
    const [top, colour] = await cells.page.evaluate(
      ([x, y]) => {
        const element = document.elementFromPoint(x!, y!)!;
        return [
          element.closest(".cm-gutters") !== null,
          getComputedStyle(element.closest(".cm-gutters")!).backgroundColor,
        ];
      },
      [box.x + box.width - 3, box.y + box.height / 2],
    );
    expect(top).toBe(true);
    expect(colour).not.toMatch(/rgba\(.*, 0(\.\d+)?\)|transparent/);
  });

  test("marks the line of an error until the text changes", async ({ cells }) => {
    await cells.open("a = 1\nb = 2|");
    await cells.page.evaluate(() => shared.editors[0]!.markError(2));
    await expect(cells.page.locator(".cm-error-line")).toHaveText("b = 2");
    await cells.type("3");
    await expect(cells.page.locator(".cm-error-line")).toHaveCount(0);
  });

  test("shows Markdown with math and Python in it", async ({ cells }) => {
    await cells.page.evaluate(
      () =>
        void shared.make({
          language: "markdown",
          text: "# Title\n\nSome *text* and $e^{i\\pi}$.\n\n$$\n\\int f\n$$\n\n```python\ndef f(): pass\n```\n",
        }),
    );
    const coloured = (text: string) => cells.page.locator(".cm-line span", { hasText: text }).first();
    const colour = (text: string) => coloured(text).evaluate((element) => getComputedStyle(element).color);
    await expect(coloured("e^{i")).toBeVisible();
    await expect.poll(() => colour("e^{i")).toBe(await colour("\\int f"));
    const plain = await cells.page.locator(".cm-content").evaluate((element) => getComputedStyle(element).color);
    expect(await colour("e^{i")).not.toBe(plain);
    expect(await colour("def")).not.toBe(plain);
    await expect(cells.page.locator(".cm-gutters")).toHaveCount(0);
  });
});

test("fifty editors share what they can", async ({ cells }) => {
  await cells.page.evaluate(() => {
    for (let i = 0; i < 50; i++) shared.make({ text: `import jax\nx = jax.numpy.ones(${i})\n` });
  });
  await expect(cells.page.locator(".cm-editor")).toHaveCount(50);
  const loaded = await cells.page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name));
  expect(loaded.filter((name) => name.includes("index.json"))).toHaveLength(1);
});
