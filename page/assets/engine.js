// Interface to the WebAssembly module, which contains the rules, the evaluators and the searches. Requests and answers
// are JSON; the network is sent as raw bytes.

const MODULE = new URL("page.wasm", import.meta.url);
const NETWORK = new URL("network.bin", import.meta.url);

export class Engine {
  static async load() {
    const response = await fetch(MODULE);
    if (!response.ok) throw new Error(`${MODULE.pathname}: ${response.status} ${response.statusText}`);
    // Do not use instantiateStreaming: some static servers do not send the media type that it requires.
    const engine = new Engine();
    const preliminary = (at, length) => engine.onPreliminary(JSON.parse(engine.text(at, length)));
    const { instance } = await WebAssembly.instantiate(await response.arrayBuffer(), { page: { preliminary } });
    engine.exports = instance.exports;
    return engine;
  }

  constructor() {
    this.exports = null;
    this.network = null;
    /** Callback for the preliminary answers to a long request. */
    this.onPreliminary = () => {};
  }

  /** Answers a request. Throws an error with the reason if the request fails. */
  call(request) {
    return this.send(new TextEncoder().encode(JSON.stringify(request)), "answer");
  }

  /**
   * Makes the network available as an evaluator. The network is large, so it is downloaded only once.
   * A call after a failed download tries again.
   */
  loadNetwork() {
    this.network ??= this.fetchNetwork();
    return this.network;
  }

  async fetchNetwork() {
    try {
      const response = await fetch(NETWORK);
      if (!response.ok) throw new Error(`${NETWORK.pathname}: ${response.status} ${response.statusText}`);
      this.send(new Uint8Array(await response.arrayBuffer()), "network");
    } catch (error) {
      this.network = null;
      throw error;
    }
  }

  send(bytes, name) {
    const { exports } = this;
    let answer;
    try {
      const at = exports.reserve(bytes.length);
      new Uint8Array(exports.memory.buffer, at, bytes.length).set(bytes);
      const length = exports[name]();
      answer = this.text(exports.answer_at(), length);
    } catch (error) {
      const length = exports.panic_len();
      throw new Error(length > 0 ? this.text(exports.panic_at(), length) : error.message, { cause: error });
    }
    const { value, error } = JSON.parse(answer);
    if (error !== undefined) throw new Error(error);
    return value;
  }

  text(at, length) {
    return new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, at, length));
  }
}
