// A page in Chromium for a test script. The script's arguments are the path of Chromium, a URL (unless the script
// runs its own server), and optionally a folder for screenshots.
//
// A Rust test starts the script and may run servers for it. The script prints commands such as `@stop` and `@start`
// on standard output, and the test answers each command with one line on the script's standard input. If
// HATEBEAM_STEPS is set, the script runs only the steps whose names contain its value.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Chromium } from "./chromium.mjs";

export class Session {
  static async open(address) {
    const [program, given, folder] = process.argv.slice(2);
    const url = address ?? given;
    const chromium = new Chromium(program);
    const page = await chromium.open().catch(async (error) => {
      await chromium.close();
      throw error;
    });
    return new Session(chromium, page, url, folder);
  }

  constructor(chromium, page, url, folder) {
    const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
    this.chromium = chromium;
    this.page = page;
    this.url = url;
    /** Sends a command to the Rust test and returns the answer. */
    this.send = async (command) => {
      console.log(`@${command}`);
      const { value, done } = await lines.next();
      assert(!done, "the Rust test did not answer");
      return value;
    };
    this.picture = async (name, options) => {
      if (!folder) return;
      mkdirSync(folder, { recursive: true });
      await page.picture(join(folder, `${name}.png`), options);
    };
    /** Runs a step, then checks that the page has reported no unexpected errors and shows no undefined values. */
    this.step = async (name, work) => {
      const only = process.env.HATEBEAM_STEPS;
      if (only && !name.includes(only)) return;
      const started = Date.now();
      try {
        await work();
        page.expectErrors();
        const text = await page.evaluate("document.body.innerText");
        assert.doesNotMatch(text, /\b(undefined|NaN)\b|\[object |^(true|false|null)$/m, "the page shows an undefined value");
      } catch (error) {
        await this.picture("failed").catch(() => {});
        await chromium.close();
        throw new Error(`${name}: ${error.message}`, { cause: error });
      }
      console.log(`ok: ${name} (${Date.now() - started} ms)`);
    };
  }

  /** Ends the session and checks that the page has sent requests only to its own host. */
  async close() {
    await this.chromium.close();
    assert.deepEqual([...this.page.hosts], [new URL(this.url).host], "the page sent requests to other hosts");
    console.log("@done");
    // An open standard input would keep the script running.
    process.stdin.destroy();
  }
}
