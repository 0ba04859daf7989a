// Answers the requests on standard input, one per line, with the page's WebAssembly. The argument is the folder with
// the page's files.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder] = process.argv.slice(2);
const { Engine } = await import(pathToFileURL(join(folder, "engine.js")));
// Node's `fetch` does not read files.
globalThis.fetch = async (url) => new Response(readFileSync(url));
const engine = await Engine.load();
await engine.loadNetwork();
engine.onPreliminary = (value) => console.log(`preliminary ${JSON.stringify(value)}`);
const { exports } = engine;
for (const line of readFileSync(0, "utf8").split("\n")) {
  const bytes = new TextEncoder().encode(line);
  new Uint8Array(exports.memory.buffer, exports.reserve(bytes.length), bytes.length).set(bytes);
  // The test compares the text of the answer, so do not parse it.
  const length = exports.answer();
  console.log(engine.text(exports.answer_at(), length));
}
