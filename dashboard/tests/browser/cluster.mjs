// The dashboard of a real coordinator with real workers, from an empty store to a game that is played to its end.
// `cluster.mjs CHROMIUM URL [FOLDER FOR PICTURES]`; as for pages.mjs, who starts it has the processes.

import assert from "node:assert/strict";
import { Session } from "./session.mjs";

const session = await Session.open();
const { page, url, tell, picture, step } = session;
/** What a browser says when a server is away. */
const AWAY = [/ERR_(CONNECTION|INCOMPLETE|EMPTY|NETWORK)/];

const chip = (state) => `document.querySelector("h1 .chip").textContent === ${JSON.stringify(state)}`;
/** The last depth that the page has. */
const depth = async () => {
  const title = await page.until("/^Depth [0-9,]+,.* the last$/.exec(document.querySelector('.well-title').textContent)?.[0]");
  return Number(/[0-9,]+/.exec(title)[0].replaceAll(",", ""));
};
const deeper = async (than) => {
  const end = Date.now() + 60_000;
  for (;;) {
    const now = await depth();
    if (now > than) return now;
    assert(Date.now() < end, `it stays at depth ${now}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

let run;

await step("a run is submitted before there is a worker", async () => {
  await page.goto(url);
  await page.shows("No run yet");
  await page.goto(`${url}#/submit`);
  await page.fill("#width", await tell("width"));
  await page.fill("#maxHours", "1");
  await page.shows("No worker");
  await page.click("button", "Submit …");
  await page.shows("It ends at 1 hour.");
  await page.click("dialog button", "Start it");
  await page.until("location.hash.startsWith('#/run/patterns-')");
  run = await page.evaluate("location.hash.slice('#/run/'.length)");
  await page.shows("waiting for workers");
  // Once, and with nothing drawn of which there is nothing yet.
  assert.equal(await page.evaluate("document.querySelector('main').innerText.split('waiting for workers').length"), 2);
  assert.equal(await page.evaluate("document.querySelector('.plots').checkVisibility()"), false);
  await picture("cluster-waiting");
});

await step("workers come, and depths with them", async () => {
  await tell("workers");
  await page.until(chip("running"));
  for (const worker of ["w0", "w1"]) await page.until(`[...document.querySelectorAll("tbody th")].some((e) => e.textContent.startsWith("${worker}"))`);
  let last = await deeper(3);
  for (let more = 0; more < 3; more += 1) last = await deeper(last);
  await page.shows("c5d.18xlarge, spot");
  await page.shows("Projected end");
  await picture("cluster-live", { whole: true });
});

await step("its best line so far is played while it goes on", async () => {
  await page.goto(`${url}#/run/${run}/game`);
  await page.until("document.querySelector('.player')");
  await page.click(".player button", "Piece forward");
  await page.until("document.querySelectorAll('.player .facts dd')[1].textContent.startsWith('2 of')");
  await page.goto(`${url}#/run/${run}`);
});

await step("the coordinator is killed, and another goes on", async () => {
  const before = await depth();
  await tell("kill");
  await page.until("!document.getElementById('away').hidden");
  await page.shows("The coordinator is away since");
  await tell("start");
  await page.until("document.getElementById('away').hidden");
  await deeper(before);
  assert(page.expectErrors(...AWAY) > 0, "the browser has noticed nothing");
});

await step("a worker is drained, and the other goes on alone", async () => {
  await page.click(".workers button", "Drain w1");
  await page.click("dialog button", "Drain it");
  assert.equal(await tell("ended w1"), "0");
  await page.until("![...document.querySelectorAll('.workers th')].some((e) => e.textContent.startsWith('w1'))");
  await deeper(await depth());
});

await step("the run is stopped, and goes on", async () => {
  await page.click(".head button", "Stop");
  await page.click("dialog button", "Stop the run");
  await page.until(chip("cancelled"));
  const at = await depth();
  await page.click(".head button", "Go on");
  await page.click("dialog button", "Go on");
  await page.until(chip("running"));
  await deeper(at);
});

await step("it is given another budget while it goes on", async () => {
  await page.click(".head button", "Limits …");
  await page.fill("#maxDollars", "12.5");
  await page.fill("#maxHours", "");
  await page.click("dialog button", "Change");
  await page.shows("The limits are changed");
  await page.shows("of $12.5");
});

await step("it ends, and its game is played to the last piece", async () => {
  await page.until(chip("finished"));
  await page.shows("read back");
  await picture("cluster-finished", { whole: true });
  const lines = await page.evaluate("document.querySelector('.card.points dd').textContent");
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
  // The program plays it by the exact rules.
  assert.equal(await tell(`verify ${score} ${pieces.replaceAll(",", "")} ${replay}`), "true");
});

await session.close();
