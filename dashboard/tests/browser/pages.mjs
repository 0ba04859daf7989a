// The dashboard as a person uses it: every page, every button. `pages.mjs CHROMIUM URL [FOLDER FOR PICTURES]`; the
// coordinator is made up by who starts it, which is told what to do with it (session.mjs).

import assert from "node:assert/strict";
import { Session } from "./session.mjs";

const session = await Session.open();
const { url, tell, picture } = session;
const RUNNING = "patterns-1000000-5f3a9c1e";
const FINISHED = "patterns-10000-0f1e2d3c";
const TOKEN = "correct-horse-battery";
/** What a browser says when a server is away. */
const AWAY = [/ERR_(CONNECTION|INCOMPLETE|EMPTY|NETWORK)/];

/** Starts the coordinator anew. No page looks at it then: one whose events are cut off would say so, and rightly. */
async function restart(page, what) {
  await page.goto("about:blank");
  await tell(what);
}

const steps = {
  async "an empty coordinator says what to do"(page) {
    await restart(page, "empty");
    await page.goto(url);
    await page.shows("No run yet");
    await page.shows("hatebeam submit --width 100k --watch");
    await page.shows("hatebeam worker --store STORE");
    await picture("empty");
    await page.click("#nav a", "Workers");
    await page.shows("No worker");
    await page.goto(`${url}#/nowhere`);
    await page.shows("Nothing here");
    await restart(page, "busy");
  },

  async "runs are listed, and change as they do"(page) {
    await page.goto(`${url}#/`);
    await page.shows(FINISHED);
    await page.shows("4 runs, 2 open; 3 workers with 216 threads");
    await page.shows("403 Forbidden");
    await page.shows("148 lines");
    const before = await tell("depths");
    await tell("grow 3");
    await page.shows(Number(before).toLocaleString("en-US"));
    await page.shows((Number(before) + 3).toLocaleString("en-US"));
    await picture("runs");
    await page.click("tbody a", RUNNING);
    await page.shows("Projected end");
  },

  async "a run of ten thousand depths is smooth"(page) {
    await page.goto(`${url}#/`);
    await page.shows(FINISHED);
    // Long tasks of the page's own, from here on.
    await page.evaluate(`
      window.longest = 0;
      window.observer = new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
      });
      window.observer.observe({ type: "longtask" }); true`);
    // A page on which nothing happens: what this machine can do.
    const idle = await page.evaluate(framesIn(1500)) * 2;
    const begun = Date.now();
    await page.click("tbody a", RUNNING);
    const depths = Number(await tell("depths"));
    assert(depths >= 10_000, `only ${depths} depths`);
    await page.until(`document.querySelector(".well-title").textContent.startsWith("Depth ${depths.toLocaleString("en-US")},")`);
    await page.until("document.querySelectorAll('.u-wrap canvas').length === 6", "six plots");
    const loaded = Date.now() - begun;
    assert(loaded < 45_000, `${loaded} ms until all depths are there`);
    console.log(`${depths} depths: there after ${loaded} ms`);
    // While a depth comes each tenth of a second the page has time left. It is its own time that is counted, in
    // seconds of a processor, and not what other work of the machine takes.
    await page.send("Performance.enable", { timeDomain: "threadTicks" });
    const worked = async () => {
      const { metrics } = await page.send("Performance.getMetrics");
      return metrics.find((metric) => metric.name === "TaskDuration").value;
    };
    const [before, start] = [await worked(), Date.now()];
    const frames = page.evaluate(framesIn(3000));
    for (let grown = 0; grown < 30; grown += 1) {
      await tell("grow 1");
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    const drawn = await frames;
    const busy = (await worked() - before) / ((Date.now() - start) / 1000);
    const longest = await page.evaluate("window.longest");
    console.log(`busy for ${Math.round(busy * 100)} % of the time; ${drawn} frames in 3 s (${idle} where nothing happens), ` +
      `the longest task ${Math.round(longest)} ms`);
    assert(busy < 0.6, `it is busy for ${busy} of the time`);
    assert(drawn > 3, `${drawn} frames in 3 s`);
  },

  async "the page of a run tells all there is"(page) {
    for (const text of ["Depth", "Best game", "Children a second", "Searched for", "Cost so far", "Cost an hour", "Projected end", "Projected cost",
      "in 4 min to 8 min", "the last 20 depths", "c5d-2: its part of a depth", "c5d-2", "under-the-desk", "its folder cannot be written to",
      "c5d.18xlarge, spot", "of $2.00", "Score", "Height of the best well", "Bytes stored a depth", "1 worker has no known price"]) {
      await page.shows(text);
    }
    // The children a second of the last ten depths are what the records say.
    const [children, seconds] = (await tell("pace")).split(" ").map(Number);
    const shown = await page.until("document.querySelector('.card.speed dd').textContent");
    const digits = Number(shown.replace("M", ""));
    assert(Math.abs(digits * 1e6 - children / seconds) < 0.02 * children / seconds, `${shown}, and it is ${children / seconds}`);
    // Over its budget: said by more than a colour.
    assert.equal(await page.evaluate("document.querySelectorAll('.budget.warn').length"), 2);
    await picture("run");
    await picture("run-whole", { whole: true });
  },

  async "the best well of each depth can be looked at"(page) {
    const title = () => page.evaluate("document.querySelector('.well-title').textContent");
    await page.click(".wells button", "First depth");
    await page.until("document.querySelector('.well-title').textContent.startsWith('Depth 1,')");
    await page.click(".wells button", "Next depth");
    await page.until("document.querySelector('.well-title').textContent.startsWith('Depth 2,')");
    // It stays there while others come.
    await tell("grow 2");
    await page.shows("Depth 2,");
    // The slider, by its keys.
    await page.evaluate("document.querySelector('.wells input').focus()");
    await page.press("ArrowRight");
    await page.until("document.querySelector('.well-title').textContent.startsWith('Depth 3,')");
    const label = await page.evaluate("document.querySelector('.wells canvas').getAttribute('aria-label')");
    assert.match(label, /^10 by 16 cells, \d+ filled, stack \d+ high, surface \d+ high$/);
    const link = await page.evaluate("document.querySelector('.wells a').hash");
    assert.equal(link, `#/run/${RUNNING}/game/3`);
    // A click in a plot.
    await page.click(".plots .u-over");
    await page.until("!document.querySelector('.well-title').textContent.startsWith('Depth 3,')");
    assert.match(await title(), /^Depth [45],\d\d\d,/);
    await page.click(".wells button", "Follow the last depth");
    await page.until("document.querySelector('.well-title').textContent.endsWith('the last')");
  },

  async "all depths are there as a table"(page) {
    await page.click(".depths summary");
    await page.until("document.querySelectorAll('.depths tbody tr').length > 0");
    const first = () => page.evaluate("document.querySelector('.depths tbody th').textContent");
    assert.equal(await first(), Number(await tell("depths")).toLocaleString("en-US"));
    await page.click(".depths button", "Earlier");
    await page.until("document.querySelectorAll('.depths tbody tr').length === 100");
    assert.match(await first(), /00$/);
    await page.click(".depths summary");
  },

  async "what is downloaded is what is shown"(page) {
    await page.evaluate(gatherSaved);
    await page.click("button", "Depths as CSV");
    const csv = await page.until("window.saved[0]");
    const rows = csv.trim().split("\n");
    assert.equal(rows.length, Number(await tell("depths")) + 1);
    assert.match(rows[0], /^depth,count,best,median,cut,points,well/);
    await page.click("button", "Run as JSON");
    assert.equal(JSON.parse(await page.until("window.saved[1]")).run, RUNNING);
  },

  async "a coordinator that is away is told, and found again"(page) {
    await tell("stop");
    await page.until("!document.getElementById('away').hidden");
    await page.shows("The coordinator is away since");
    await page.shows("Trying again");
    // Wherever on the page one is.
    const [top, bottom] = await page.evaluate("(() => { const b = document.getElementById('away').getBoundingClientRect(); return [b.top, b.bottom]; })()");
    assert(top >= 0 && bottom < 200, `the banner is from ${top} to ${bottom}`);
    await picture("away");
    // What was known is still shown.
    await page.shows("Projected end");
    await tell("start");
    const before = Number(await tell("depths"));
    await tell("grow 5");
    await page.until("document.getElementById('away').hidden");
    await page.until(`document.querySelector(".well-title").textContent.startsWith("Depth ${(before + 5).toLocaleString("en-US")},")`);
    assert(page.expectErrors(...AWAY) > 0, "the browser has noticed nothing");
  },

  async "a worker is drained, after a question"(page) {
    await page.click(".workers button", "Drain c5d-1");
    await page.shows("Drain c5d-1?");
    await picture("dialog");
    await page.press("Escape");
    await page.until("!document.querySelector('dialog')");
    assert.equal(await tell("drained"), "");
    await page.click(".workers button", "Drain c5d-1");
    await page.click("dialog button", "Drain it");
    await page.shows("c5d-1 goes at the end of the depth");
    assert.equal(await tell("drained"), "c5d-1");
    await page.until("[...document.querySelectorAll('.workers tbody tr')].some((row) => row.innerText.includes('draining'))");
    await page.click("#nav a", "Workers");
    await page.shows("3 workers with 216 threads, $4.84 an hour, not counting 1 worker whose price is not known");
    await picture("workers");
  },

  async "a replay is played to its last piece"(page) {
    await page.goto(`${url}#/run/${FINISHED}`);
    await page.shows("It was ended by its budget.");
    await page.click("a", "Best game");
    await page.shows("148 lines in");
    const facts = () => page.evaluate("[...document.querySelectorAll('.player .facts dd')].map((e) => e.textContent)");
    // It is there a moment before it is drawn.
    const pieces = await page.until("document.querySelectorAll('.player .facts dd')[1].textContent.split(' of ')[1]");
    assert.equal((await facts())[0], "S");
    await page.press("ArrowRight");
    await page.until("document.querySelectorAll('.keys .done').length === 1", "one key pressed");
    await page.click(".player button", "Piece forward");
    await page.until("document.querySelectorAll('.player .facts dd')[1].textContent.startsWith('2 of')");
    await page.click(".player button", "Key forward");
    await page.click(".player button", "Key forward");
    await page.click(".player button", "Key back");
    await page.until("document.querySelectorAll('.keys .done').length === 1", "one key pressed");
    await page.click(".player button", "Piece back");
    await page.until("document.querySelectorAll('.keys .done').length === 0");
    await page.press("Home");
    // Slowly, then as fast as can be, to the end.
    await page.click(".player button", "Play");
    await page.until("document.querySelectorAll('.player .facts dd')[3].textContent.split(' ')[0] > 3");
    await page.click(".player button", "Pause");
    await page.evaluate("(() => { const e = document.getElementById('speed'); e.value = e.max; e.dispatchEvent(new Event('input')); })()");
    await page.shows("600 keys a second");
    await page.press("PageDown");
    for (let piece = 0; piece < 60; piece += 1) await page.press("PageDown");
    await page.until("document.querySelectorAll('.player .facts dd')[1].textContent.startsWith('6')");
    await picture("player");
    await page.click(".player button", "Play");
    await page.until("document.querySelector('.player .facts dd').textContent.endsWith('over')");
    assert.deepEqual((await facts()).slice(1, 3), [`${pieces} of ${pieces}`, "148 of 148"]);
    await page.until("document.querySelector('.player canvas').getAttribute('aria-label').startsWith('The game is over with 148 lines')");
    await picture("player-end");
    await page.evaluate("(() => { const e = document.querySelector('.controls > input'); e.value = 300; e.dispatchEvent(new Event('input')); })()");
    await page.until("document.querySelectorAll('.player .facts dd')[3].textContent.startsWith('300 of')");
    assert.equal(await page.evaluate("document.querySelector('a[href*=\"qntm.org\"]').rel"), "noreferrer noopener");
    await page.evaluate(gatherSaved);
    await page.evaluate(`
      window.copied = null;
      Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied = text; } } });
      true`);
    await page.click("button", "Copy as Base2048");
    await page.shows("Replay copied");
    const replay = await tell("replay");
    assert.equal(await page.evaluate("window.copied"), replay);
    for (const text of ["Base2048 file", "Keys as letters", "JSON with every well"]) await page.click("button", text);
    await page.until("window.saved.length === 3");
    const [file, letters, json] = await page.evaluate("window.saved");
    assert.equal(file.trim(), replay);
    assert.match(letters.trim(), /^[LRDU]+$/);
    assert.equal(JSON.parse(json).turns.length, JSON.parse(json).pieces);
    // The game to a depth of a run that goes on.
    await page.goto(`${url}#/run/${RUNNING}/game/7`);
    await page.shows("Game to depth 7");
    await page.shows("148 lines in");
  },

  async "a game that cannot be read back, or a run that is not there, is no riddle"(page) {
    await tell("no-games");
    await page.goto(`${url}#/run/${RUNNING}/game`);
    await page.shows("The game cannot be shown: this coordinator reads games back only when a run has ended");
    await page.click("button", "Try again");
    await page.shows("this coordinator reads games back only when a run has ended");
    await page.goto(`${url}#/run/no-such-run/game`);
    await page.shows("there is no run");
    await page.goto(`${url}#/run/no-such-run`);
    await page.shows("To the runs");
    await page.shows('there is no run "no-such-run"');
    assert(await page.evaluate("document.getElementById('away').hidden"), "the coordinator is not away");
    assert(page.expectErrors(/status of (501|404)/) >= 4);
  },

  async "a run is submitted, with an estimate first"(page) {
    await page.goto(`${url}#/submit`);
    await page.shows("60 s to 3 min");
    await page.shows("$0.08 to $0.20");
    await picture("submit");
    await page.fill("#width", "many");
    await page.shows("Give a whole number of wells");
    await page.click("button", "Submit …");
    await page.until("document.activeElement.id === 'width'");
    assert(!await page.evaluate("document.querySelector('dialog')"));
    await page.fill("#width", "1M");
    await page.shows("No estimate: nobody knows");
    assert(page.expectErrors(/status of 400/) >= 1);
    await page.fill("#width", "250k");
    await page.fill("#maxDollars", "12.50");
    await page.fill("#maxHours", "2");
    await page.choose("#keep", "4");
    await page.shows("60 s to 3 min");
    await page.click("button", "Submit …");
    await page.shows("Start a run 250k wells wide?");
    await page.shows("It ends at $12.50 or 2 hours.");
    await picture("submit-dialog");
    await page.click("dialog button", "Start it");
    await page.shows("The run is in the queue");
    await page.until("location.hash === '#/run/patterns-250000-made-up'");
    await page.shows("queued");
    const { spec, keep, max_cost_micros: micros, max_seconds: seconds } = JSON.parse(await tell("submitted"));
    assert.deepEqual(JSON.parse(spec), {
      width: 250_000, well: { columns: 10, rows: 16, clear_above_bar: false }, start: "empty",
      evaluator: { kind: "patterns", quiescence: "off" },
    });
    assert.deepEqual([keep, micros, seconds], ["4", 12_500_000, 7200]);
    // From a piece of a replay.
    await page.goto(`${url}#/submit`);
    await page.click("details summary");
    await page.choose("#start", "replay");
    await page.click("button", "Submit …");
    await page.shows("Paste the replay.");
    await page.fill("#startReplay", "௨ටໃݹ௨ටໃݹठ");
    await page.fill("#startPiece", "5");
    await page.click("button", "Submit …");
    await page.click("dialog button", "Start it");
    await page.until("location.hash === '#/run/patterns-100000-made-up'");
    assert.deepEqual(JSON.parse(JSON.parse(await tell("submitted")).spec).start, { replay: { base2048: "௨ටໃݹ௨ටໃݹठ", piece: 5 } });
  },

  async "a run is given another budget"(page) {
    await page.goto(`${url}#/run/${RUNNING}`);
    await page.click(".head button", "Limits …");
    await page.until("document.activeElement.id === 'maxDollars'");
    assert.equal(await page.evaluate("document.activeElement.value"), "2");
    await page.fill("#maxDollars", "-3");
    await page.click("dialog button", "Change");
    await page.shows("Give a number above 0");
    await page.fill("#maxDollars", "7.5");
    await page.fill("#maxHours", "");
    await picture("limits");
    await page.click("dialog button", "Change");
    await page.shows("The limits are changed");
    await page.shows("of $7.50");
    assert.equal(await tell("limits"), "7500000 0");
  },

  async "a run that its budget has ended goes on with more"(page) {
    await page.goto(`${url}#/run/${FINISHED}`);
    await page.click(".head button", "Go on");
    await page.shows("ended by its budget: give more of that");
    await page.fill("#maxDollars", "50");
    await page.click("dialog button", "Go on");
    await page.shows("The run is in the queue again");
    assert.equal(JSON.parse(await tell("submitted")).max_cost_micros, 50_000_000);
    await restart(page, "busy");
  },

  async "a run is stopped, and goes on"(page) {
    await page.goto(`${url}#/run/${RUNNING}`);
    await page.click(".head button", "Stop");
    await page.shows("Stop this run?");
    await page.click("dialog button", "Not now");
    await page.until("!document.querySelector('dialog')");
    await page.click(".head button", "Stop");
    await page.click("dialog button", "Stop the run");
    await page.until("document.querySelector('h1 .chip').textContent === 'cancelled'");
    await page.until("document.getElementById('link').textContent === 'ended'");
    await page.click(".head button", "Go on");
    await page.click("dialog button", "Go on");
    await page.shows("The run is in the queue again");
    assert.equal(JSON.parse(JSON.parse(await tell("submitted")).spec).width, 1_000_000);
    await restart(page, "busy");
  },

  async "it can be used with the keyboard, and read aloud"(page) {
    for (const path of ["", "#/workers", "#/submit", `#/run/${RUNNING}`, `#/run/${FINISHED}/game`]) {
      await page.goto(url + path);
      await page.until("document.querySelector('main h1')");
      await page.until("document.querySelector('main').innerText.length > 150");
      await page.until(settled);
      const faults = await page.evaluate(`(() => {
        const faults = [];
        const name = (e) => (e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent || e.alt || "").trim();
        for (const e of document.querySelectorAll("button, a[href], input, select, [role=img], [role=region], meter, progress")) {
          if (e.checkVisibility() && name(e) === "") faults.push("without a name: " + e.outerHTML.slice(0, 120));
        }
        for (const e of document.querySelectorAll("img:not([alt])")) faults.push("without alt: " + e.outerHTML);
        if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");
        for (const tag of ["header", "nav[aria-label]", "main"]) if (!document.querySelector(tag)) faults.push("no " + tag);
        const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
        if (new Set(ids).size !== ids.length) faults.push("an id twice");
        return faults;
      })()`);
      assert.deepEqual(faults, [], path);
    }
    // From the top of the page: the link that skips, the pages, and where the focus is can be seen.
    await page.goto(url);
    await page.shows(FINISHED);
    await page.evaluate("document.activeElement.blur()");
    await page.press("Tab");
    assert.equal(await page.evaluate("document.activeElement.className"), "skip");
    assert.equal(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle"), "solid");
    await page.press("Enter");
    assert.equal(await page.evaluate("document.activeElement.id"), "main");
    await page.press("Tab");
    await page.press("Enter");
    await page.until("location.hash === '#/submit'");
  },

  async "text can be told from what is behind it, light and dark"(page) {
    for (const scheme of ["light", "dark"]) {
      await page.likes({ "prefers-color-scheme": scheme });
      await page.until(`document.documentElement.dataset.theme === "${scheme}"`);
      for (const path of ["", `#/run/${RUNNING}`, `#/run/${FINISHED}/game`, "#/submit"]) {
        await page.goto(`${url}${path}`);
        await page.until(settled);
        const faults = await page.evaluate(contrastFaults);
        assert.deepEqual(faults, [], `${scheme} ${path}`);
      }
    }
    // As it usually is: the pictures of the documentation.
    await restart(page, "busy 160");
    await page.goto(url);
    for (const scheme of ["light", "dark"]) {
      await page.likes({ "prefers-color-scheme": scheme });
      await page.until(`document.documentElement.dataset.theme === "${scheme}"`);
      await page.goto(`${url}#/run/${RUNNING}`);
      await page.until("document.querySelectorAll('.u-wrap canvas').length === 6");
      await picture(`run-${scheme}`);
    }
    // The switch goes against the system, and is remembered.
    await page.likes({ "prefers-color-scheme": "light" });
    await page.until("document.documentElement.dataset.theme === 'light'");
    const back = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await back();
    await page.click("#theme");
    await page.click("#theme");
    assert.equal(await page.evaluate("document.getElementById('theme').textContent"), "Dark");
    const dark = await back();
    assert.notEqual(light, dark);
    await page.send("Page.reload");
    await page.until("document.getElementById('theme')?.textContent === 'Dark'");
    assert.equal(await back(), dark);
    await page.click("#theme");
  },

  async "it fits a phone"(page) {
    await page.size(390, 844, true);
    for (const [path, name] of [["", "runs"], [`#/run/${RUNNING}`, "run"], [`#/run/${FINISHED}/game`, "player"], ["#/submit", "submit"], ["#/workers", "workers"]]) {
      await page.goto(`${url}${path}`);
      await page.until("document.querySelector('main').innerText.length > 150");
      await page.until(settled);
      const [wide, screen] = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]");
      assert(wide <= screen, `${name} is ${wide} wide on a screen of ${screen}`);
      const small = await page.evaluate(`[...document.querySelectorAll("main button, main a.button, main select")]
        .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 32).map((e) => e.outerHTML.slice(0, 90))`);
      assert.deepEqual(small, [], name);
      await picture(`phone-${name}`);
    }
    await page.size(1280, 900);
  },

  async "who prefers less motion gets none"(page) {
    await page.likes({ "prefers-reduced-motion": "reduce" });
    await page.goto(`${url}#/run/${FINISHED}/game`);
    await page.shows("148 lines in");
    const moving = await page.evaluate("[...document.querySelectorAll('*')].filter((e) => parseFloat(getComputedStyle(e).transitionDuration) > 0).length");
    assert.equal(moving, 0);
    assert.match(await page.evaluate("document.querySelectorAll('.player .facts dd')[3].textContent"), /^0 of/);
    await page.likes({});
  },

  async "with a token one signs in, and out"(page) {
    await tell("token");
    // The page that was open finds itself signed out.
    await page.goto(`${url}#/`);
    await page.shows("This coordinator wants its token");
    await picture("sign-in");
    await page.fill("#token", "correct-horse-batterz");
    await page.press("Enter");
    await page.shows("this is not the server's token");
    await page.fill("#token", TOKEN);
    await page.press("Enter");
    await page.shows(FINISHED);
    assert.equal(await page.evaluate("document.cookie"), "", "a script can read the cookie");
    await page.goto(`${url}#/run/${RUNNING}`);
    await page.shows("Projected end");
    await page.click("#sign-out");
    await page.shows("This coordinator wants its token");
    page.expectErrors(/status of 401/, ...AWAY);
  },
};

/** How many frames are drawn in a time. */
function framesIn(ms) {
  return `new Promise((resolve) => {
    let frames = 0;
    const end = performance.now() + ${ms};
    const tick = (now) => { frames += 1; if (now < end) requestAnimationFrame(tick); else resolve(frames); };
    requestAnimationFrame(tick);
  })`;
}

/** The page has what it shows. */
const settled = `document.querySelector("main").innerText.length > 150 && !/Reading the game back|Waiting for the/.test(document.querySelector("main").innerText)`;

/** What is saved from now on is gathered in `saved`. */
const gatherSaved = `(() => {
  window.saved = [];
  if (window.gathers) return;
  window.gathers = true;
  const create = URL.createObjectURL;
  URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return create.call(URL, blob); };
})()`;

/** Text whose contrast with what is behind it is less than 4.5 (3 where it is large). */
const contrastFaults = `(() => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (text) => { pen.clearRect(0, 0, 1, 1); pen.fillStyle = text; pen.fillRect(0, 0, 1, 1); return [...pen.getImageData(0, 0, 1, 1).data]; };
  const part = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
  const faults = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim() === "" || !e.checkVisibility() || e.closest(".unseen, .skip, option, noscript, :disabled")) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(rgba(style.color)), light(behind(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24 || parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 700;
    if (contrast < (isLarge ? 3 : 4.5)) faults.add(contrast.toFixed(2) + " " + e.className + " " + walker.currentNode.data.slice(0, 40));
  }
  return [...faults];
})()`;

for (const [name, work] of Object.entries(steps)) await session.step(name, () => work(session.page));
await session.close();
