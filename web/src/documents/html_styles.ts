/** The style of a document in an HTML file: like the playground, in light and dark, on paper and on a phone. */
export const FILE_STYLES = `
:root {
  color-scheme: light dark;
  --page: #ffffff; --text: #1c2024; --soft: #5b6470; --line: #d9dee4; --code: #f5f7f9; --link: #0b5fae;
  --error: #a8161c; --error-page: #fdf0f0;
  --keyword: #8a2a86; --string: #1c6b36; --number: #9a4a00; --comment: #5e6873; --name: #0b5fae; --type: #0f6a6a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181c; --text: #e4e8ec; --soft: #a2abb5; --line: #343b43; --code: #1d2126; --link: #7cb8f5;
    --error: #ff9a96; --error-page: #331d1e;
    --keyword: #d99ad6; --string: #8fd3a0; --number: #eab27c; --comment: #98a2ad; --name: #7cb8f5; --type: #7fd0cf;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
header {
  display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: baseline; justify-content: space-between;
  padding: 0.7rem max(1rem, calc(50vw - 24rem)); border-bottom: 1px solid var(--line); font-size: 0.9rem;
}
header .title { color: var(--soft); overflow-wrap: anywhere; }
main { max-width: 50rem; margin: 0 auto; padding: 1rem 1rem 4rem; }
h1, h2, h3, h4, h5, h6 { line-height: 1.25; margin: 1.6em 0 0.5em; overflow-wrap: anywhere; }
h1 { font-size: 1.9rem; margin-top: 0.6em; }
h2 { font-size: 1.4rem; }
h3 { font-size: 1.15rem; }
a { color: var(--link); }
a.open {
  padding: 0.3rem 0.8rem; border: 1px solid var(--link); border-radius: 6px; text-decoration: none; font-weight: 600;
}
a.open:hover { text-decoration: underline; }
blockquote { margin: 1em 0; padding-left: 1em; border-left: 3px solid var(--line); color: var(--soft); }
img { max-width: 100%; height: auto; }
.markdown table { border-collapse: collapse; display: block; overflow-x: auto; }
.markdown th, .markdown td { padding: 0.3rem 0.8rem; border-bottom: 1px solid var(--line); text-align: left; }
.cell { margin: 1.2rem 0; }
.markdown > :first-child { margin-top: 0.6em; }
pre, code { font: 0.875rem/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
pre { margin: 0; overflow-x: auto; white-space: pre-wrap; overflow-wrap: anywhere; }
.markdown code { background: var(--code); border-radius: 4px; padding: 0.1em 0.3em; }
.markdown pre, pre.code { background: var(--code); border-radius: 8px; padding: 0.8rem 1rem; margin: 0.8rem 0; }
.markdown pre code { background: none; padding: 0; }
.output { padding: 0 1rem; }
.output > * { margin: 0.6rem 0; }
.output pre.stderr { color: var(--soft); }
.output pre.error { color: var(--error); background: var(--error-page); border-radius: 8px; padding: 0.6rem 1rem; }
.output iframe { width: 100%; border: 0; resize: vertical; }
.figure.light img { background: #ffffff; border-radius: 8px; }
math { font-size: 1.1em; }
math[display="block"] { overflow-x: auto; overflow-y: hidden; margin: 1em 0; }
.math-error { color: var(--error); }
.tok-keyword, .tok-bool { color: var(--keyword); }
.tok-string, .tok-string2 { color: var(--string); }
.tok-number { color: var(--number); }
.tok-comment { color: var(--comment); font-style: italic; }
.tok-definition, .tok-propertyName.tok-definition { color: var(--name); }
.tok-className, .tok-typeName { color: var(--type); }
@media (max-width: 30rem) { .output { padding: 0; } body { font-size: 15px; } }
@media print { header .open { display: none; } pre.code { border: 1px solid var(--line); } }
`;
