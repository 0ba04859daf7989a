// Answers requests in a worker thread, one after another.

import { Engine } from "./engine.js";

const loading = Engine.load();
let last = loading.catch(() => {});

async function answer({ id, request }) {
  try {
    const engine = await loading;
    if (request.evaluator === "network") await engine.loadNetwork();
    engine.onPreliminary = (value) => postMessage({ id, value, isPreliminary: true });
    postMessage({ id, value: engine.call(request) });
  } catch (error) {
    postMessage({ id, error: error.message });
  }
}

onmessage = ({ data }) => {
  last = last.then(() => answer(data));
};
