// The grammar colours the example as VS Code's own engine reads it.
const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const test = require("node:test");
const oniguruma = require("vscode-oniguruma");
const { Registry, parseRawGrammar } = require("vscode-textmate");

const root = path.join(__dirname, "..");

async function loaded() {
  const wasm = fs.readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
  await oniguruma.loadWASM(wasm);
  const file = path.join(root, "syntaxes", "mlir.tmLanguage.json");
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => parseRawGrammar(fs.readFileSync(file, "utf8"), file),
  });
  return registry.loadGrammar("source.mlir");
}

/** The scope of each token of a line, by its text. */
function scopes(grammar, line) {
  const found = {};
  for (const token of grammar.tokenizeLine(line, null).tokens) {
    found[line.slice(token.startIndex, token.endIndex).trim()] = token.scopes.at(-1);
  }
  return found;
}

test("roles of tokens", async () => {
  const grammar = await loaded();
  const head = scopes(grammar, "ait.graph @f(%x: !ait.tensor<batch x 768 x f16>) dims {batch = 1 to 64} { // note");
  assert.equal(head["ait.graph"], "support.function.op.mlir");
  assert.equal(head["@f"], "entity.name.function.mlir");
  assert.equal(head["%x"], "variable.other.value.mlir");
  assert.equal(head["!ait.tensor"], "storage.type.mlir");
  assert.equal(head["batch"], "variable.parameter.dim.mlir");
  assert.equal(head["768"], "constant.numeric.mlir");
  assert.equal(head["f16"], "storage.type.element.mlir");
  assert.equal(head["// note"], "comment.line.double-slash.mlir");
  const op = scopes(grammar, '  %y = ait.param "a\\"b" : !ait.tensor<f32>');
  assert.equal(op["%y"], "variable.other.value.mlir");
  assert.equal(op['\\"'], "constant.character.escape.mlir");

  let open = null;
  for (const line of fs.readFileSync(path.join(root, "..", "..", "examples", "ffn.mlir"), "utf8").split("\n")) {
    open = grammar.tokenizeLine(line, open).ruleStack;
  }
  assert.equal(open.depth, 1, "no string or type is open at the end of the example");
});
