// One page of a Chromium, for a script that is called with the program, an address, and perhaps a folder for pictures.
//
// Who starts the script has the servers, and is told what to do with them on standard output (`@stop`, `@start`, …);
// each is answered with a line on standard input when it is done. HATEBEAM_STEPS has only those steps done that it names.

import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Chromium } from "./chromium.mjs";

export class Session {
  static async open() {
    const [program, url, folder] = process.argv.slice(2);
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
    /** Has something done, and gives the answer. */
    this.tell = async (what) => {
      console.log(`@${what}`);
      const { value, done } = await lines.next();
      assert(!done, "nobody answers");
      return value;
    };
    this.picture = async (name, options) => {
      if (!folder) return;
      mkdirSync(folder, { recursive: true });
      await page.picture(join(folder, `${name}.png`), options);
    };
    /** What a person does, after which there must be no error that was not expected. */
    this.step = async (name, work) => {
      const only = process.env.HATEBEAM_STEPS;
      if (only && !name.includes(only)) return;
      const begun = Date.now();
      try {
        await work();
        page.expectErrors();
        const text = await page.evaluate("document.body.innerText");
        assert.doesNotMatch(text, /\b(undefined|NaN)\b|\[object |^(true|false|null)$/m, "a value that is none is shown");
      } catch (error) {
        await this.picture("failed").catch(() => {});
        await chromium.close();
        throw new Error(`${name}: ${error.message}`, { cause: error });
      }
      console.log(`ok: ${name} (${Date.now() - begun} ms)`);
    };
  }

  /** The end, if all went well. */
  async close() {
    await this.chromium.close();
    assert.deepEqual([...this.page.hosts], [new URL(this.url).host], "nothing is loaded from elsewhere");
    console.log("@done");
    // Nobody says anything any more.
    process.stdin.destroy();
  }
}
