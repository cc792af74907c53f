/**
 * The element before it is used: colours, the code, the bar. Once it is, the site's styles follow. A page changes
 * colours and fonts by giving `weft-cell` custom properties of these names.
 */
export const styles = `
:host {
  --paper: light-dark(#f6f4ee, #15171b);
  --surface: light-dark(#fffefb, #1b1e23);
  --ink: light-dark(#22252b, #e4e3de);
  --dim: light-dark(#6a6961, #9a9c9b);
  --line: light-dark(#e2ded3, #2c3037);
  --accent: light-dark(#3c50bd, #97a7ff);
  --accent-soft: light-dark(#e9ecfb, #262c45);
  --on-accent: light-dark(#ffffff, #12141c);
  --thread: light-dark(#bf5529, #e8956a);
  --error: light-dark(#ab2418, #ff9d8f);
  --error-soft: light-dark(#fbeae6, #3a2220);
  --syntax-keyword: light-dark(#7a3a9a, #c8a2ea);
  --syntax-string: light-dark(#2d7047, #97cfa6);
  --syntax-number: light-dark(#a8491d, #eda877);
  --syntax-name: light-dark(#2f49b5, #a5b4ff);
  --syntax-comment: light-dark(#76746a, #868984);
  --sans: ui-sans-serif, system-ui, -apple-system, "Segoe UI", "Inter", "Helvetica Neue", "Liberation Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", "JetBrains Mono", "Cascadia Code", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  --radius: 7px;
  display: block;
  margin: 1em 0;
  font: 14px/1.45 var(--sans);
  color: var(--ink);
  text-align: start;
}
:host([hidden]) { display: none; }
:host([theme="light"]) { color-scheme: light; }
:host([theme="dark"]) { color-scheme: dark; }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.cell {
  border: 1px solid var(--line);
  border-radius: 10px;
  background: var(--surface);
  overflow: clip;
}
.source { max-height: var(--cell-height, none); overflow: auto; }
.source pre {
  margin: 0;
  padding: 12px 16px;
  font: 13.5px/1.6 var(--mono);
  tab-size: 4;
  overflow-x: auto;
  cursor: text;
}
.source pre:focus-visible { outline-offset: -3px; border-radius: 10px 10px 0 0; }
.keyword { color: var(--syntax-keyword); }
.string { color: var(--syntax-string); }
.number { color: var(--syntax-number); }
.name, .definition { color: var(--syntax-name); }
.definition { font-weight: 600; }
.comment { color: var(--syntax-comment); font-style: italic; }
.bar {
  display: flex;
  align-items: center;
  flex-wrap: wrap;
  gap: 6px 8px;
  padding: 7px 10px;
  border-top: 1px solid var(--line);
  background: var(--paper);
}
.source[hidden] + .bar { border-top: 0; }
.bar button {
  height: 30px;
  padding: 0 11px;
  border: 1px solid transparent;
  border-radius: var(--radius);
  background: none;
  color: var(--dim);
  font: inherit;
  font-size: 13px;
  cursor: pointer;
}
.bar button:hover { color: var(--ink); border-color: var(--line); }
.bar .run {
  display: inline-flex;
  align-items: center;
  gap: 8px;
  background: var(--accent);
  border-color: var(--accent);
  color: var(--on-accent);
  font-weight: 600;
}
.bar .run:hover { color: var(--on-accent); background: color-mix(in srgb, var(--accent) 88%, var(--ink)); }
.run svg { width: 9px; height: 10px; fill: currentColor; }
.bar .stop { border-color: var(--line); background: var(--surface); color: var(--ink); }
.state {
  margin-inline: 4px auto;
  min-width: 0;
  color: var(--dim);
  font-size: 13px;
  font-variant-numeric: tabular-nums;
}
.state[data-state="busy"]::before {
  content: "";
  display: inline-block;
  width: 8px;
  height: 8px;
  margin-inline-end: 8px;
  border-radius: 50%;
  background: var(--thread);
  animation: breathe 1.1s ease-in-out infinite alternate;
}
.state[data-state="error"] { color: var(--error); }
@keyframes breathe { to { opacity: 0.25; } }
@media (prefers-reduced-motion: reduce) { .state::before { animation: none !important; } }
.output { padding: 10px 16px 12px; border-top: 1px solid var(--line); max-height: 72vh; overflow: auto; }
.output:empty { display: none; }
`;
