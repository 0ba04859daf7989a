// Tests the dashboard of a real coordinator with real workers, from an empty store to the replay of the best game.
// Usage: `cluster.mjs CHROMIUM URL [SCREENSHOTS_FOLDER]`. The Rust test that starts this script runs the processes.

import assert from "node:assert/strict";
import { Session } from "./session.mjs";

const session = await Session.open();
const { page, url, send, picture, step } = session;
/** Patterns of the errors that the browser reports if the server is unreachable. */
const OFFLINE_ERRORS = [/ERR_(CONNECTION|INCOMPLETE|EMPTY|NETWORK)/];

/** Longest wait for the next depth, in milliseconds. */
const DEPTH_TIMEOUT = 60_000;
const wait = () => new Promise((resolve) => setTimeout(resolve, 50));
const chip = (state) => `document.querySelector("h1 .chip")?.textContent === ${JSON.stringify(state)}`;
/** Waits until the page shows its last depth, and returns this depth. */
const depth = async () => {
  const title = await page.until("/^Depth [0-9,]+,.* last depth$/.exec(document.querySelector('.well-title').textContent)?.[0]");
  return Number(/[0-9,]+/.exec(title)[0].replaceAll(",", ""));
};
/** Waits until the page shows a depth greater than `than`, and returns it. */
const deeper = async (than) => {
  const end = Date.now() + DEPTH_TIMEOUT;
  for (;;) {
    const now = await depth();
    if (now > than) return now;
    assert(Date.now() < end, `the run stays at depth ${now}`);
    await wait();
  }
};
/** Waits until the run has finished. Limits only the time between two depths: a slow machine takes minutes for all. */
const finished = async () => {
  let last = null;
  let end = Date.now() + DEPTH_TIMEOUT;
  while (!(await page.evaluate(chip("finished")))) {
    const title = await page.evaluate("document.querySelector('.well-title')?.textContent");
    if (title !== last) {
      last = title;
      end = Date.now() + DEPTH_TIMEOUT;
    }
    assert(Date.now() < end, `the run stays at ${title}`);
    await wait();
  }
};

let run;

await step("run is submitted without a worker", async () => {
  await page.goto(url);
  await page.shows("No runs yet");
  await page.goto(`${url}#/submit`);
  await page.fill("#width", await send("width"));
  await page.fill("#maxHours", "1");
  await page.shows("No worker");
  await page.click("button", "Submit …");
  await page.shows("It stops at 1 hour.");
  await page.click("dialog button", "Start");
  await page.until("location.hash.startsWith('#/run/network-')");
  run = await page.evaluate("location.hash.slice('#/run/'.length)");
  await page.shows("waiting for workers");
  // The run's note appears only once, and empty plots are hidden.
  assert.equal(await page.evaluate("document.querySelector('main').innerText.split('waiting for workers').length"), 2);
  assert.equal(await page.evaluate("document.querySelector('.plots').checkVisibility()"), false);
  await picture("cluster-waiting");
});

await step("workers connect and search", async () => {
  await send("workers");
  await page.until(chip("running"));
  for (const worker of ["w0", "w1"]) await page.until(`[...document.querySelectorAll("tbody th")].some((e) => e.textContent.startsWith("${worker}"))`);
  let last = await deeper(3);
  for (let more = 0; more < 3; more += 1) last = await deeper(last);
  await page.shows("c5d.18xlarge, spot");
  await page.shows("Projected end");
  await picture("cluster-live", { whole: true });
});

await step("best game so far is played during the run", async () => {
  await page.goto(`${url}#/run/${run}/game`);
  await page.until("document.querySelector('.player')");
  await page.click(".player button", "Next piece");
  await page.until("document.querySelectorAll('.player .facts dd')[1].textContent.startsWith('2 of')");
  await page.goto(`${url}#/run/${run}`);
});

await step("coordinator is killed and restarted", async () => {
  const before = await depth();
  await send("kill");
  await page.until("!document.getElementById('offline').hidden");
  await page.shows("The coordinator is unreachable.");
  await send("start");
  await page.until("document.getElementById('offline').hidden");
  await deeper(before);
  assert(page.expectErrors(...OFFLINE_ERRORS) > 0, "the browser reported no errors while the server was unreachable");
});

await step("run continues after one of its workers is drained", async () => {
  await page.click(".workers button", "Drain w1");
  await page.click("dialog button", "Drain");
  await page.until("[...document.querySelectorAll('.workers tbody tr')].some((row) => row.innerText.includes('drained'))");
  await deeper(await depth());
});

await step("run is stopped and resumed", async () => {
  await page.click(".head button", "Stop");
  await page.click("dialog button", "Stop the run");
  await page.until(chip("cancelled"));
  const at = await depth();
  await page.click(".head button", "Resume");
  await page.click("dialog button", "Resume");
  await page.until(chip("running"));
  await deeper(at);
});

await step("limits are changed during the run", async () => {
  await page.click(".head button", "Limits …");
  await page.fill("#maxDollars", "12.5");
  await page.fill("#maxHours", "");
  await page.click("dialog button", "Change");
  await page.shows("Limits changed");
  await page.shows("of $12.5");
});

await step("run ends and its best game is played to the last piece", async () => {
  await finished();
  await page.shows("read back");
  await picture("cluster-finished", { whole: true });
  const lines = await page.evaluate("document.querySelector('.card.lines dd').textContent");
  await page.click("a", "Best game");
  await page.until("document.querySelector('.player')");
  await page.evaluate("(() => { const e = document.getElementById('speed'); e.value = e.max; e.dispatchEvent(new Event('input')); })()");
  await page.click(".player button", "Play");
  await page.until("document.querySelector('.player .facts dd').textContent.endsWith('over')");
  const facts = await page.evaluate("[...document.querySelectorAll('.player .facts dd')].map((e) => e.textContent)");
  const [played, pieces] = facts[1].split(" of ");
  assert.equal(played, pieces);
  const score = Number(lines.split(" ")[0].replaceAll(",", ""));
  assert.equal(facts[2], `${score} of ${score}`);
  await picture("cluster-player");
  await page.evaluate(`
    window.copied = null;
    Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied = text; } } });
    true`);
  await page.click("button", "Copy as Base2048");
  const replay = await page.until("window.copied");
  // The Rust test plays the replay with `hatebeam replay verify` and checks its score and its number of pieces.
  assert.equal(await send(`verify ${score} ${pieces.replaceAll(",", "")} ${replay}`), "true");
});

await session.close();
