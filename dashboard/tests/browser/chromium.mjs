// Controls a headless Chromium over a pipe with the DevTools protocol. This module needs only Chromium and Node.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Maximum time to wait for a condition, in milliseconds. */
const TIMEOUT = 60_000;

export class Chromium {
  constructor(program) {
    this.profile = mkdtempSync(join(tmpdir(), "hatebeam-chromium-"));
    this.process = spawn(program, [
      "--headless=new", "--remote-debugging-pipe", `--user-data-dir=${this.profile}`, "--no-first-run", "--disable-gpu",
      "--hide-scrollbars", "--force-color-profile=srgb", "--disable-dev-shm-usage",
      // Chromium's sandbox does not work for root. The tests open only pages of this project.
      ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
    ], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.number = 0;
    this.waiting = new Map();
    this.pages = new Map();
    let text = "";
    this.process.stdio[4].setEncoding("utf8").on("data", (more) => {
      text += more;
      for (let end = text.indexOf("\0"); end >= 0; end = text.indexOf("\0")) {
        this.receive(JSON.parse(text.slice(0, end)));
        text = text.slice(end + 1);
      }
    });
  }

  receive({ id, result, error, method, params, sessionId }) {
    if (id === undefined) {
      this.pages.get(sessionId)?.receive(method, params);
      return;
    }
    const { resolve, reject } = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) reject(new Error(error.message));
    else resolve(result);
  }

  send(method, params = {}, sessionId) {
    this.number += 1;
    const id = this.number;
    const answer = new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return answer;
  }

  async open() {
    // Deny downloads, so that they are not written to the disk.
    await this.send("Browser.setDownloadBehavior", { behavior: "deny" });
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId);
    this.pages.set(sessionId, page);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.send(`${domain}.enable`);
    await page.size(1280, 900);
    return page;
  }

  async close() {
    const exited = new Promise((resolve) => this.process.once("exit", resolve));
    this.send("Browser.close").catch(() => {});
    const timer = setTimeout(() => this.process.kill("SIGKILL"), 5000);
    await exited;
    clearTimeout(timer);
    rmSync(this.profile, { recursive: true, force: true });
  }
}

class Page {
  constructor(chromium, session) {
    this.chromium = chromium;
    this.session = session;
    /** Errors and warnings that the page has reported since the last call of `expectErrors`. */
    this.errors = [];
    /** Hosts to which the page has sent requests. */
    this.hosts = new Set();
  }

  send(method, params) {
    return this.chromium.send(method, params, this.session);
  }

  receive(method, params) {
    if (method === "Runtime.exceptionThrown") {
      const { exceptionDetails: details } = params;
      this.errors.push(details.exception?.description ?? details.text);
    } else if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) {
      this.errors.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    } else if (method === "Runtime.consoleAPICalled" && ["error", "warning", "assert"].includes(params.type)) {
      this.errors.push(params.args.map((arg) => arg.value ?? arg.description).join(" "));
    } else if (method === "Network.requestWillBeSent") {
      const { host, protocol } = new URL(params.request.url);
      if (protocol.startsWith("http")) this.hosts.add(host);
    }
  }

  /** Clears the list of errors and returns its length. Throws if an error matches none of the patterns. */
  expectErrors(...patterns) {
    const { errors } = this;
    this.errors = [];
    for (const error of errors) {
      if (!patterns.some((pattern) => pattern.test(error))) throw new Error(`error in the page: ${error}`);
    }
    return errors.length;
  }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Waits until the value of an expression is truthy, and returns the value. */
  async until(expression, description = expression) {
    const end = Date.now() + TIMEOUT;
    for (;;) {
      const value = await this.evaluate(`(() => { try { return ${expression}; } catch { return null; } })()`);
      if (value) return value;
      if (Date.now() > end) {
        const text = await this.evaluate("document.body.innerText.slice(0, 3000)");
        throw new Error(`timed out waiting for ${description}; the page shows:\n${text}\n${this.errors.join("\n")}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }

  /** Waits until the page shows a text. */
  shows(text) {
    return this.until(`document.body.innerText.includes(${JSON.stringify(text)})`, `the text “${text}”`);
  }

  async goto(url) {
    await this.send("Page.navigate", { url });
    await this.until("document.readyState === 'complete'");
  }

  /** Returns an expression for the first visible element that matches `selector` and, if given, has this text or label. */
  static find(selector, text) {
    const has = text === undefined ? "true"
      : `[e.textContent.trim(), e.getAttribute("aria-label")].includes(${JSON.stringify(text)})`;
    return `[...document.querySelectorAll(${JSON.stringify(selector)})].find((e) => e.checkVisibility() && ${has})`;
  }

  /** Scrolls an element into view and clicks on its centre. */
  async click(selector, text) {
    const element = Page.find(selector, text);
    await this.until(`${element} && !${element}.disabled`, `an enabled ${selector} ${text ?? ""}`);
    await this.evaluate(`${element}.scrollIntoView({ block: "center", behavior: "instant" })`);
    const [x, y] = await this.evaluate(`(() => { const b = ${element}.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()`);
    for (const type of ["mouseMoved", "mousePressed", "mouseReleased"]) {
      await this.send("Input.dispatchMouseEvent", { type, x, y, button: type === "mouseMoved" ? "none" : "left", clickCount: 1 });
    }
  }

  /** Presses a key such as "a", "Enter" or "Tab". */
  async press(key, { shift = false } = {}) {
    const codes = { Enter: 13, Tab: 9, Escape: 27, " ": 32, PageUp: 33, PageDown: 34, End: 35, Home: 36, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Backspace: 8 };
    const text = key === "Enter" ? "\r" : key.length === 1 ? key : undefined;
    const event = { key, code: key === " " ? "Space" : key, windowsVirtualKeyCode: codes[key] ?? key.toUpperCase().charCodeAt(0), modifiers: shift ? 8 : 0 };
    await this.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", text, ...event });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }

  /** Replaces the text in a field. */
  async fill(selector, text) {
    await this.click(selector);
    await this.evaluate(`${Page.find(selector)}.select()`);
    await this.send("Input.insertText", { text });
  }

  async choose(selector, value) {
    await this.evaluate(`(() => { const e = ${Page.find(selector)}; e.value = ${JSON.stringify(value)}; e.dispatchEvent(new Event("input", { bubbles: true })); })()`);
  }

  size(width, height, mobile = false) {
    return this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: mobile ? 2 : 1, mobile });
  }

  /** Emulates the system's media features, such as a preference for dark colours. */
  prefer(features) {
    const list = Object.entries(features).map(([name, value]) => ({ name, value }));
    return this.send("Emulation.setEmulatedMedia", { features: list });
  }

  async picture(file, { whole = false } = {}) {
    const clip = whole ? await this.evaluate("({ x: 0, y: 0, width: innerWidth, height: document.documentElement.scrollHeight, scale: 1 })") : undefined;
    const { data } = await this.send("Page.captureScreenshot", { format: "png", clip, captureBeyondViewport: whole });
    writeFileSync(file, Buffer.from(data, "base64"));
  }
}
