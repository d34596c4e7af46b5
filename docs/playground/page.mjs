// The page: an editor, the choices, the answers of the worker. The state is in the link.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { cppLanguage } from "@codemirror/lang-cpp";
import { pythonLanguage } from "@codemirror/lang-python";
import { StreamLanguage, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { Tag, tagHighlighter, tags } from "@lezer/highlight";
import tokens from "./tokens.json";

const $ = (id) => document.getElementById(id);
const LARGEST_LINK = 200_000;
const DEBOUNCE_MS = 400;

// ---- colours: the kinds of tokens of ait_mlir/tools/language/tokens.py, with its colours

const kinds = Object.fromEntries(tokens.kinds.map((kind) => [kind, Tag.define()]));
const token = new RegExp(tokens.token, "y");
const element = new RegExp(`^(?:${tokens.element})$`);
const ir = StreamLanguage.define({
  startState: () => ({ open: [] }),
  copyState: (state) => ({ open: [...state.open] }),
  tokenTable: kinds,
  token(stream, state) {
    if (stream.sol()) state.open = [];
    if (stream.eatSpace()) return null;
    token.lastIndex = stream.pos;
    const found = token.exec(stream.string);
    if (found === null) return stream.skipToEnd(), null;
    stream.pos += found[0].length;
    const text = found[0];
    const kind = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
    if ("([{<".includes(text)) state.open.push(text);
    else if (")]}>".includes(text)) state.open.pop();
    if (kind !== "word") return kind;
    if (text.includes(".")) return "op";
    if (element.test(text)) return "element";
    return state.open.includes("<") && text !== "x" ? "dim" : "word";
  },
});
const colours = tagHighlighter([
  ...Object.entries(kinds).map(([kind, tag]) => ({ tag, class: kind })),
  { tag: [tags.comment, tags.lineComment, tags.blockComment], class: "comment" },
  { tag: [tags.string, tags.special(tags.string)], class: "string" },
  { tag: [tags.keyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword, tags.processingInstruction], class: "op" },
  { tag: [tags.typeName, tags.standard(tags.typeName)], class: "type" },
  { tag: [tags.function(tags.variableName), tags.function(tags.definition(tags.variableName))], class: "symbol" },
]);
const languages = { ir, python: pythonLanguage, cpp: cppLanguage };

function view(parent, ...extensions) {
  const language = new Compartment();
  const editor = new EditorView({
    parent,
    state: EditorState.create({
      extensions: [
        lineNumbers(), drawSelection(), bracketMatching(), syntaxHighlighting(colours), language.of([]),
        EditorView.editorAttributes.of({ class: "ait-ir" }), ...extensions,
      ],
    }),
  });
  return {
    editor,
    set(text, name) {
      editor.dispatch({
        changes: { from: 0, to: editor.state.doc.length, insert: text },
        effects: language.reconfigure(languages[name]),
      });
    },
    colour(name) { editor.dispatch({ effects: language.reconfigure(languages[name]) }); },
    get text() { return editor.state.doc.toString(); },
  };
}

const input = view(
  $("editor"), history(), lintGutter(),
  keymap.of([{ key: "Mod-Enter", run: () => (compile(), true) }, indentWithTab, ...defaultKeymap, ...historyKeymap, ...searchKeymap]),
  EditorView.updateListener.of((update) => update.docChanged && later()),
);
input.editor.contentDOM.setAttribute("aria-label", "Text of the model");
const output = view($("output"), EditorState.readOnly.of(true), keymap.of([...searchKeymap, ...defaultKeymap]));
output.editor.contentDOM.setAttribute("aria-label", "Result");

// ---- the worker

let worker, choices, pending = null, waiting = false, count = 0, tab = "ir", answer = null, timer;
const notices = []; // problems of the page itself, shown with the next answer

function launch() {
  worker = new Worker("worker.mjs", { type: "module" });
  worker.onmessage = ({ data }) => {
    if (data.stage) $("status").textContent = data.stage;
    else if (data.choices) ready(data.choices);
    else if (data.failed) show({ diagnostics: [{ message: `The page failed: ${data.failed}. Reload it.` }], ir: "", files: {}, steps: [] });
    else if (data.id === count) show(data.answer);
    if (data.id !== undefined || data.failed) finish();
  };
  worker.onerror = (event) => { $("status").textContent = `The worker did not start: ${event.message ?? "see the console"}`; };
}

function finish() {
  pending = null;
  $("stop").hidden = true;
  if (waiting) { waiting = false; compile(); }
}

function ready(found) {
  const first = choices === undefined;
  choices = found;
  if (!first) { $("status").textContent = "Stopped; Python is ready again"; return; }
  fill($("to"), [...choices.phases, ["passes", "a list of passes"]]);
  for (const name of choices.passes) $("pass-names").append(new Option(name));
  restore().then(() => document.body.dataset.ready = "");
}

function fill(select, options) {
  select.replaceChildren(...options.map((o) => (Array.isArray(o) ? new Option(o[1], o[0]) : new Option(o))));
}

const request = () => ({
  text: input.text, kind: $("kind").value, target: $("target").value, arch: $("arch").value, to: $("to").value,
  passes: $("to").value === "passes" ? $("passes").value : null, steps: tab === "steps",
});

function later() {
  clearTimeout(timer);
  timer = setTimeout(compile, DEBOUNCE_MS);
}

function compile() {
  clearTimeout(timer);
  if (choices === undefined) return;
  if (pending !== null) { waiting = true; return; }
  const asked = request();
  remember(asked);
  $("command").textContent = command(asked);
  pending = { id: ++count };
  worker.postMessage({ id: count, request: asked });
  $("status").textContent = "Compiling…";
  const mine = count;
  setTimeout(() => { if (pending?.id === mine) $("stop").hidden = false; }, 1500);
}

function command({ kind, target, arch, to, passes }) {
  const file = kind === "python" ? "model.mlir" : "input.mlir";
  const first = kind === "python" ? "save print(build_module(y)) as model.mlir; " : "";
  if (passes !== null) return `${first}ait-opt ${file} -p '${passes}'`;
  return `${first}ait compile ${file} --target ${target} --arch ${arch} --to ${to}`;
}

// ---- answers

function show(found) {
  answer = found;
  const errors = [...notices.splice(0), ...found.diagnostics];
  $("problems").replaceChildren(...errors.map(problem));
  const marks = errors.filter((d) => d.line > 0 && /^(input\.mlir|script\.py)$/.test(d.file)).map((d) => {
    const doc = input.editor.state.doc;
    const line = doc.line(Math.min(d.line, doc.lines));
    const from = Math.min(line.from + d.column - 1, line.to);
    return { from, to: Math.max(from, line.to), severity: "error", message: d.message };
  });
  input.editor.dispatch(setDiagnostics(input.editor.state, marks));
  const names = Object.keys(found.files), chosen = $("file").value;
  fill($("file"), names);
  if (names.includes(chosen)) $("file").value = chosen;
  const seconds = found.seconds === undefined ? "" : ` in ${found.seconds.toFixed(2)} s`;
  $("status").textContent = errors.length ? `${errors.length} ${errors.length > 1 ? "errors" : "error"}${seconds}` : `Compiled${seconds}`;
  document.body.dataset.answers = count;
  draw();
}

function problem(d) {
  const row = document.createElement("li");
  if (d.line > 0) {
    const place = document.createElement("a");
    place.href = "#";
    place.textContent = `${d.file}:${d.line}:${d.column}`;
    place.onclick = (event) => { event.preventDefault(); jump(d); };
    row.append(place, ": ");
  }
  row.append(d.message);
  return row;
}

function jump(d) {
  if (d.file === "<passes>") { $("passes").focus(); return; }
  const doc = input.editor.state.doc, line = doc.line(Math.min(d.line, doc.lines));
  input.editor.dispatch({ selection: { anchor: Math.min(line.from + d.column - 1, line.to) }, scrollIntoView: true });
  input.editor.focus();
}

function draw() {
  for (const name of ["ir", "code", "steps"]) $(`tab-${name}`).setAttribute("aria-selected", String(tab === name));
  $("file").hidden = tab !== "code" || !$("file").options.length;
  $("steps").hidden = tab !== "steps";
  $("output").hidden = tab === "steps";
  if (answer === null) return;
  if (tab === "ir") output.set(answer.ir || "// no IR: mend the errors first\n", "ir");
  if (tab === "code") output.set(answer.files[$("file").value] ?? noCode(), "cpp");
  if (tab === "steps") $("steps").replaceChildren(...steps());
}

function noCode() {
  if (answer.diagnostics.length) return "// no code: mend the errors first\n";
  return '// no code yet: choose "source" under "Stop at"\n';
}

function steps() {
  if (!answer.steps.length) {
    const text = answer.diagnostics.length ? "No pass has run: mend the errors first." : "No pass ran.";
    return [Object.assign(document.createElement("p"), { textContent: text })];
  }
  return answer.steps.map((step) => {
    const milliseconds = `${(step.seconds * 1e3).toFixed(1)} ms`;
    const applied = step.rewrites.map((rewrite) => `${rewrite.count} × ${rewrite.pattern}`).join(", ");
    if (!step.changes) {
      return Object.assign(document.createElement("p"), { className: "none", textContent: `${step.name}: no change, ${milliseconds}` });
    }
    const row = document.createElement("details"), summary = document.createElement("summary"), text = document.createElement("pre");
    summary.textContent = `${step.name}: ${applied ? `${applied}, ` : ""}${milliseconds}`;
    for (const line of step.changes.split("\n")) {
      const kind = line.startsWith("@@") ? "place" : { "+": "added", "-": "removed" }[line[0]] ?? "";
      text.append(Object.assign(document.createElement("span"), { className: kind, textContent: line }));
    }
    const laws = step.rewrites.filter((rewrite) => rewrite.law).map((rewrite) =>
      Object.assign(document.createElement("p"), { className: "law", textContent: `${rewrite.pattern}: ${rewrite.law}` }));
    row.append(summary, ...laws, text);
    return row;
  });
}

// ---- the link: the state as JSON, deflated, in base64url

async function pipe(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function link(state) {
  const bytes = await pipe(new TextEncoder().encode(JSON.stringify({ ...state, tab })), new CompressionStream("deflate-raw"));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return `#s=${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
}

async function stateOfLink() {
  if (!location.hash.startsWith("#s=")) return null;
  const text = atob(location.hash.slice(3).replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = await pipe(Uint8Array.from(text, (c) => c.charCodeAt(0)), new DecompressionStream("deflate-raw"));
  const state = JSON.parse(new TextDecoder().decode(bytes));
  if (typeof state.text !== "string") throw new Error("no text");
  return state;
}

let written = "";
async function remember(state) {
  if (state.text.length > LARGEST_LINK) return;
  written = await link(state);
  window.history.replaceState(null, "", written);
}

async function share() {
  if (input.text.length > LARGEST_LINK) {
    $("status").textContent = `The text is too long for a link: ${input.text.length} characters, at most ${LARGEST_LINK}`;
    return;
  }
  await remember(request());
  try {
    await navigator.clipboard.writeText(location.href);
    $("status").textContent = "The link is in the clipboard";
  } catch {
    $("status").textContent = "The link is in the address bar";
  }
}

// ---- start

let examples = [];

function apply(state) {
  $("kind").value = state.kind === "python" ? "python" : "ir";
  if ([...$("target").options].some((o) => o.value === state.target)) $("target").value = state.target;
  fill($("arch"), choices.archs[$("target").value]);
  if (choices.archs[$("target").value].includes(state.arch)) $("arch").value = state.arch;
  if ([...$("to").options].some((o) => o.value === state.to)) $("to").value = state.to;
  $("passes").value = state.passes ?? "simplify,fuse-epilogue";
  $("passes-label").hidden = $("to").value !== "passes";
  if (["ir", "code", "steps"].includes(state.tab)) tab = state.tab;
  input.set(state.text, $("kind").value);
  clearTimeout(timer);
}

async function restore() {
  examples = await (await fetch("./examples.json")).json();
  fill($("example"), [["", "choose…"], ...examples.map((e, i) => [String(i), e.title])]);
  await follow();
}

async function follow() {
  let state = null;
  try {
    state = await stateOfLink();
  } catch {
    notices.push({ line: 0, message: "The link is damaged: it holds no state of this page. The first example is shown." });
  }
  $("example").value = state === null ? "0" : "";
  apply(state ?? { ...examples[0], target: "cuda", to: "source", tab: "ir" });
  if (state?.kind === "python") {
    $("status").textContent = "This link brings a Python script: read it, then press Compile to run it here";
    document.body.dataset.answers = "0";
  } else compile();
}

$("example").onchange = () => {
  const example = examples[Number($("example").value)];
  if ($("example").value === "" || example === undefined) return;
  apply({ ...request(), ...example, tab });
  compile();
};
$("kind").onchange = () => { input.colour($("kind").value); compile(); };
$("target").onchange = () => { fill($("arch"), choices.archs[$("target").value]); compile(); };
$("arch").onchange = compile;
$("to").onchange = () => { $("passes-label").hidden = $("to").value !== "passes"; compile(); };
$("passes").oninput = later;
$("run").onclick = compile;
$("share").onclick = share;
$("file").onchange = draw;
$("stop").onclick = () => { worker.terminate(); pending = null; waiting = false; $("stop").hidden = true; launch(); };
for (const name of ["ir", "code", "steps"]) {
  $(`tab-${name}`).onclick = () => { tab = name; draw(); if (name === "steps") compile(); };
}
window.onhashchange = () => { if (location.hash !== written && choices) follow(); };
launch();
