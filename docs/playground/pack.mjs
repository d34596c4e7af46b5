// node pack.mjs PYODIDE FOLDER OUTPUT: byte-compiles the Python files of FOLDER with the Python of the page
// and packs the folder into OUTPUT/python.json and OUTPUT/python.pack.
import { readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const [pyodide, folder, output] = process.argv.slice(2).map((path) => resolve(path));
const fail = (error) => { console.error(String(error?.message ?? error).slice(-4000)); process.exit(1); };
process.on("uncaughtException", fail).on("unhandledRejection", fail);
const { loadPyodide } = await import(pathToFileURL(join(pyodide, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: pyodide });
python.mountNodeFS("/packages", folder);
python.runPython(`
import compileall, sys
ok = compileall.compile_dir("/packages", quiet=1, legacy=True, ddir="", invalidation_mode=compileall.py_compile.PycInvalidationMode.UNCHECKED_HASH)
assert ok, "a file of the package does not compile"
`);
const walk = (path) => readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
  entry.isDirectory() ? walk(join(path, entry.name)) : [join(path, entry.name)]);
for (const file of walk(folder)) if (file.endsWith(".py")) rmSync(file);
const parts = [], files = [], folders = new Set();
let at = 0;
for (const file of walk(folder).sort()) {
  const name = relative(folder, file), data = readFileSync(file);
  if (name.includes("/")) folders.add(name.slice(0, name.lastIndexOf("/")));
  files.push([name, at, (at += data.length)]);
  parts.push(data);
}
const packed = gzipSync(Buffer.concat(parts), { level: 9 });
writeFileSync(join(output, "python.pack"), packed);
writeFileSync(join(output, "python.json"), JSON.stringify({ folders: [...folders].sort(), files }));
console.log(`${files.length} files of Python, ${(packed.length / 1e6).toFixed(1)} MB`);
