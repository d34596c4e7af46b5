// Runs the compiler: Python in WebAssembly, apart from the page, which therefore never waits for it.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const say = (stage) => postMessage({ stage });

async function unpack(python) {
  const index = await (await fetch("./python.json")).json();
  const packed = (await fetch("./python.pack")).body.pipeThrough(new DecompressionStream("gzip"));
  const data = new Uint8Array(await new Response(packed).arrayBuffer());
  for (const folder of index.folders) python.FS.mkdirTree(`/packages/${folder}`);
  for (const [name, start, end] of index.files) {
    python.FS.writeFile(`/packages/${name}`, data.subarray(start, end), { canOwn: true });
  }
}

async function start() {
  say("Loading Python…");
  const python = await loadPyodide({ indexURL: new URL("./pyodide/", import.meta.url).href });
  say("Loading the compiler…");
  await unpack(python);
  python.runPython("import sys; sys.path.insert(0, '/packages'); import standins; standins.install()");
  const playground = python.pyimport("ait_mlir.tools.playground");
  postMessage({ choices: JSON.parse(playground.choices()) });
  return playground;
}

const ready = start();
ready.catch((error) => postMessage({ failed: String(error?.message ?? error).trim().split("\n").at(-1) }));

onmessage = async ({ data: { id, request } }) => {
  try {
    postMessage({ id, answer: JSON.parse((await ready).answer(JSON.stringify(request))) });
  } catch (error) {
    postMessage({ id, failed: String(error?.message ?? error).trim().split("\n").at(-1) });
  }
};
