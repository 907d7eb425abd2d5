/** Looks like paper by day and like a terminal by night; nothing is loaded from anywhere. */
export const STYLE = `
:root { --ink: #1c1e21; --soft: #666b73; --line: #e3e5e8; --paper: #fff; --side: #f7f7f5; --code: #f2f3f0; --accent: #a4450f;
  --get: #1f6f4a; --post: #1b5ea8; --put: #7a4fb5; --patch: #96690a; --delete: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e3; --soft: #9aa0a8; --line: #2e3238; --paper: #16181b; --side: #1b1e22;
  --code: #22262b; --accent: #f0935a; --get: #5cc391; --post: #6fb0f5; --put: #b998ee; --patch: #dcb04f; --delete: #f28b82; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body { margin: 0; display: grid; grid-template-columns: 15rem minmax(0, 1fr); color: var(--ink); background: var(--paper);
  font: 15px/1.55 ui-sans-serif, system-ui, -apple-system, "Segoe UI", sans-serif; }
nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.4rem 1.2rem; background: var(--side); border-right: 1px solid var(--line); }
nav .brand { white-space: nowrap; font-weight: 700; font-size: 1.15rem; color: var(--ink); }
nav .brand small { font-weight: 400; color: var(--soft); }
nav h4 { margin: 1.1rem 0 .2rem; font-size: .72rem; letter-spacing: .08em; text-transform: uppercase; color: var(--soft); }
nav h4 a { color: inherit; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: block; padding: .08rem 0; color: var(--ink); }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
main { padding: 2.2rem 3rem 6rem; max-width: 62rem; }
h1 { margin: 0 0 .6rem; font-size: 1.9rem; letter-spacing: -.01em; }
h2 { margin: 3rem 0 1rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); font-size: 1.25rem; text-transform: capitalize; }
article { margin: 0 0 1.2rem; padding: 1rem 1.2rem; border: 1px solid var(--line); border-radius: 8px; }
article:target { border-color: var(--accent); }
article header { display: flex; align-items: baseline; gap: .7rem; flex-wrap: wrap; }
article p { margin: .5rem 0; }
.method { min-width: 3.6rem; font: 600 .78rem/1 ui-monospace, monospace; letter-spacing: .04em; }
.get { color: var(--get); } .post { color: var(--post); } .put { color: var(--put); } .patch { color: var(--patch); } .delete { color: var(--delete); }
.path { font-size: .95rem; background: none; padding: 0; } .path em { color: var(--accent); font-style: normal; }
.who { margin-left: auto; font-size: .8rem; color: var(--soft); }
.status { display: inline-block; padding: 0 .4rem; border-radius: 4px; background: var(--code); font: 600 .8rem/1.5 ui-monospace, monospace; color: var(--get); }
.answer, details summary { color: var(--soft); font-size: .9rem; cursor: default; } details summary { cursor: pointer; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .87em; }
code { background: var(--code); padding: .08em .3em; border-radius: 4px; }
pre { background: var(--code); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; font-size: .88rem; }
caption { text-align: left; font-size: .72rem; letter-spacing: .08em; text-transform: uppercase; color: var(--soft); padding: .2rem 0; }
th { text-align: left; font-weight: 600; color: var(--soft); }
th, td { padding: .28rem .6rem .28rem 0; border-top: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere; }
td b { color: var(--accent); margin-left: .15rem; } .type { color: var(--soft); width: 26%; } .fields td:first-child { width: 26%; }
tr:target td { background: var(--code); }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media (max-width: 760px) { html { scroll-padding-top: 4rem; } body { display: block; }
  nav { display: flex; align-items: baseline; gap: 1.1rem; height: auto; padding: .7rem 1.2rem; overflow-x: auto; border: 0; border-bottom: 1px solid var(--line); }
  nav ul { display: none; } nav h4 { margin: 0; } main { padding: 1.2rem; } article { padding: .8rem; } .who { margin-left: 0; }
  .fields tr { display: block; padding: .3rem 0; border-top: 1px solid var(--line); } .fields td { display: inline; border: 0; padding: 0 .5rem 0 0; }
  .fields td:last-child { display: block; } }
`;
