// An engine in a worker thread, for long requests.

/** Error with which pending requests fail after `stop`. */
export class Stopped extends Error {}

export class Remote {
  constructor() {
    this.worker = null;
    this.waiting = new Map();
    this.number = 0;
  }

  get isBusy() {
    return this.waiting.size > 0;
  }

  /** Sends a request and returns a promise for its answer. Calls `onPreliminary` with each preliminary answer. */
  call(request, onPreliminary = () => {}) {
    this.worker ??= this.start();
    this.number += 1;
    const id = this.number;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject, onPreliminary }));
    this.worker.postMessage({ id, request });
    return answer;
  }

  start() {
    const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data: { id, value, error, isPreliminary } }) => {
      const { resolve, reject, onPreliminary } = this.waiting.get(id);
      if (isPreliminary) {
        onPreliminary(value);
        return;
      }
      this.waiting.delete(id);
      if (error === undefined) resolve(value);
      else reject(new Error(error));
    };
    worker.onerror = (event) => this.fail(new Error(event.message || "the worker cannot be started"));
    return worker;
  }

  /** Terminates the worker. Pending requests fail with `Stopped`. */
  stop() {
    this.fail(new Stopped("stopped"));
  }

  fail(error) {
    this.worker?.terminate();
    this.worker = null;
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }
}
