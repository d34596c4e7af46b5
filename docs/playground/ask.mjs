// node ask.mjs PLAYGROUND < REQUESTS: the answers of a built page to a JSON list of requests, as a JSON list, without a
// browser; for tests.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

const folder = resolve(process.argv[2]);
const fail = (error) => { console.error(String(error?.message ?? error).slice(-4000)); process.exit(1); };
process.on("uncaughtException", fail).on("unhandledRejection", fail);
const { loadPyodide } = await import(pathToFileURL(join(folder, "pyodide", "pyodide.mjs")));
const python = await loadPyodide({ indexURL: join(folder, "pyodide") });
const { folders, files } = JSON.parse(readFileSync(join(folder, "python.json")));
const data = gunzipSync(readFileSync(join(folder, "python.pack")));
for (const name of folders) python.FS.mkdirTree(`/packages/${name}`);
for (const [name, start, end] of files) python.FS.writeFile(`/packages/${name}`, data.subarray(start, end));
python.runPython("import sys; sys.path.insert(0, '/packages'); import standins; standins.install()");
const playground = python.pyimport("ait_mlir.tools.playground");
const requests = JSON.parse(readFileSync(0));
console.log(JSON.stringify(requests.map((request) => JSON.parse(playground.answer(JSON.stringify(request))))));
