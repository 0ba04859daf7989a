// Tests every page and button of the dashboard. Usage: `pages.mjs CHROMIUM URL [SCREENSHOTS_FOLDER]`. The Rust test
// that starts this script runs a fake coordinator and executes the commands that the script sends (see session.mjs).

import assert from "node:assert/strict";
import { Session } from "./session.mjs";

const session = await Session.open();
const { url, send, picture } = session;
const RUNNING = "patterns-1000000-5f3a9c1e";
const FINISHED = "patterns-10000-0f1e2d3c";
const TOKEN = "correct-horse-battery";
/** Patterns of the errors that the browser reports if the server is unreachable. */
const OFFLINE_ERRORS = [/ERR_(CONNECTION|INCOMPLETE|EMPTY|NETWORK)/];

/** Opens a blank page, which has no stream to interrupt, and sends a command that restarts the coordinator. */
async function restart(page, command) {
  await page.goto("about:blank");
  await send(command);
}

const steps = {
  async "empty coordinator shows instructions"(page) {
    await restart(page, "empty");
    await page.goto(url);
    await page.shows("No runs yet");
    await page.shows("hatebeam submit --width 100k --watch");
    await page.shows("hatebeam worker --store STORE");
    await picture("empty");
    await page.click("#nav a", "Workers");
    await page.shows("No worker");
    await page.goto(`${url}#/nowhere`);
    await page.shows("Page not found");
    await restart(page, "busy");
  },

  async "game pages work on the dashboard"(page) {
    await page.goto(`${url}#/`);
    await page.click("#nav a", "Games");
    await page.shows("The enemy’s reason");
    await page.press(" ");
    await page.shows("Piece");
    // The dashboard's security headers must permit the web worker and its WebAssembly.
    await page.click("button", "Search from here");
    await page.shows("Ended: every game is over");
  },

  async "list of runs updates live"(page) {
    await page.goto(`${url}#/`);
    await page.shows(FINISHED);
    await page.shows("4 runs, 2 open; 3 workers with 216 threads");
    await page.shows("403 Forbidden");
    await page.shows("148 lines");
    const before = await send("depths");
    await send("grow 3");
    await page.shows(Number(before).toLocaleString("en-US"));
    await page.shows((Number(before) + 3).toLocaleString("en-US"));
    await picture("runs");
    await page.click("tbody a", RUNNING);
    await page.shows("Projected end");
  },

  async "page of ten thousand depths stays responsive"(page) {
    await page.goto(`${url}#/`);
    await page.shows(FINISHED);
    // Record the duration of the page's longest task.
    await page.evaluate(`
      window.longest = 0;
      window.observer = new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
      });
      window.observer.observe({ type: "longtask" }); true`);
    // For comparison, estimate the number of frames that an idle page draws in 3 seconds.
    const idle = await page.evaluate(framesIn(1500)) * 2;
    const started = Date.now();
    await page.click("tbody a", RUNNING);
    const depths = Number(await send("depths"));
    assert(depths >= 10_000, `the page has only ${depths} depths`);
    await page.until(`document.querySelector(".well-title").textContent.startsWith("Depth ${depths.toLocaleString("en-US")},")`);
    await page.until("document.querySelectorAll('.u-wrap canvas').length === 6", "six plots");
    const loaded = Date.now() - started;
    assert(loaded < 45_000, `loading all depths takes ${loaded} ms`);
    console.log(`${depths} depths: loaded after ${loaded} ms`);
    // Check that the page is not saturated while 30 depths arrive within a few seconds. This measures the page's own
    // processor time, so other work on the machine does not matter.
    await page.send("Performance.enable", { timeDomain: "threadTicks" });
    const worked = async () => {
      const { metrics } = await page.send("Performance.getMetrics");
      return metrics.find((metric) => metric.name === "TaskDuration").value;
    };
    const [before, start] = [await worked(), Date.now()];
    const frames = page.evaluate(framesIn(3000));
    for (let grown = 0; grown < 30; grown += 1) {
      await send("grow 1");
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
    const drawn = await frames;
    const busy = (await worked() - before) / ((Date.now() - start) / 1000);
    const longest = await page.evaluate("window.longest");
    console.log(`busy for ${Math.round(busy * 100)} % of the time; ${drawn} frames in 3 s (${idle} on an idle page), ` +
      `longest task ${Math.round(longest)} ms`);
    assert(busy < 0.6, `the page is busy for ${Math.round(busy * 100)} % of the time`);
    assert(drawn > 3, `the page draws only ${drawn} frames in 3 s`);
  },

  async "page of a run shows all its data"(page) {
    for (const text of ["Depth", "Best game", "Children per second", "Search time", "Cost so far", "Cost per hour", "Projected end", "Projected cost",
      "in 4 min to 8 min", "the last 20 depths", "c5d-2: needs three times as long", "c5d-2", "under-the-desk", "cannot write to its scratch directory",
      "c5d.18xlarge, spot", "of $2.00", "1 h 48 min of 2 h 00 min, 90 %", "Evaluator score",
      "Height of the best well", "Bytes stored per depth", "The price of 2 workers is unknown",
      "excluding 1 worker of unknown price"]) {
      await page.shows(text);
    }
    // The page shows the speed of the last ten depths.
    const [children, seconds] = (await send("speed")).split(" ").map(Number);
    const shown = await page.until("document.querySelector('.card.speed dd').textContent");
    const digits = Number(shown.replace("M", ""));
    assert(Math.abs(digits * 1e6 - children / seconds) < 0.02 * children / seconds, `shown: ${shown}, expected: ${children / seconds}`);
    // Both limits are nearly reached, so both are highlighted.
    assert.equal(await page.evaluate("document.querySelectorAll('.budget.warn').length"), 2);
    await picture("run");
    await picture("run-whole", { whole: true });
  },

  async "best well of each depth is shown"(page) {
    const title = () => page.evaluate("document.querySelector('.well-title').textContent");
    await page.click(".wells button", "First depth");
    await page.until("document.querySelector('.well-title').textContent.startsWith('Depth 1,')");
    await page.click(".wells button", "Next depth");
    await page.until("document.querySelector('.well-title').textContent.startsWith('Depth 2,')");
    // New depths do not change the selection.
    await send("grow 2");
    await page.shows("Depth 2,");
    // Move the slider with the keyboard.
    await page.evaluate("document.querySelector('.wells input').focus()");
    await page.press("ArrowRight");
    await page.until("document.querySelector('.well-title').textContent.startsWith('Depth 3,')");
    const label = await page.evaluate("document.querySelector('.wells canvas').getAttribute('aria-label')");
    assert.match(label, /^10 by 16 cells, \d+ filled, stack \d+ high, surface \d+ high$/);
    const link = await page.evaluate("document.querySelector('.wells a').hash");
    assert.equal(link, `#/run/${RUNNING}/game/3`);
    // Select a depth with a click in a plot.
    await page.click(".plots .u-over");
    await page.until("!document.querySelector('.well-title').textContent.startsWith('Depth 3,')");
    assert.match(await title(), /^Depth [45],\d\d\d,/);
    await page.click(".wells button", "Follow the last depth");
    await page.until("document.querySelector('.well-title').textContent.endsWith('last depth')");
  },

  async "table shows all depths"(page) {
    await page.click(".depths summary");
    await page.until("document.querySelectorAll('.depths tbody tr').length > 0");
    const first = () => page.evaluate("document.querySelector('.depths tbody th').textContent");
    assert.equal(await first(), Number(await send("depths")).toLocaleString("en-US"));
    await page.click(".depths button", "Earlier");
    await page.until("document.querySelectorAll('.depths tbody tr').length === 100");
    assert.match(await first(), /00$/);
    await page.click(".depths summary");
  },

  async "downloads contain all depths and the run"(page) {
    await page.evaluate(collectDownloads);
    await page.click("button", "Depths as CSV");
    const csv = await page.until("window.saved[0]");
    const rows = csv.trim().split("\n");
    assert.equal(rows.length, Number(await send("depths")) + 1);
    assert.match(rows[0], /^depth,count,best_eval,median_eval,worst_eval,best_lines,best_well/);
    await page.click("button", "Run as JSON");
    assert.equal(JSON.parse(await page.until("window.saved[1]")).run, RUNNING);
  },

  async "page reports an unreachable coordinator and reconnects"(page) {
    const known = await savedSeconds(page);
    await send("stop");
    await page.until("!document.getElementById('offline').hidden");
    await page.shows("The coordinator is unreachable.");
    await page.shows("Next attempt in");
    // The countdown is not a part of the alert, so the alert does not change with it.
    const alert = "document.querySelector('#offline [role=alert]').textContent";
    const announced = await page.evaluate(alert);
    assert.doesNotMatch(announced, /attempt|Connecting/);
    const countdown = await page.evaluate("document.getElementById('offline-retry').textContent");
    await page.until(`document.getElementById('offline-retry').textContent !== ${JSON.stringify(countdown)}`);
    assert.equal(await page.evaluate(alert), announced);
    // The banner is visible at every scroll position.
    const [top, bottom] = await page.evaluate("(() => { const b = document.getElementById('offline').getBoundingClientRect(); return [b.top, b.bottom]; })()");
    assert(top >= 0 && bottom < 200, `the banner is from ${top} to ${bottom}`);
    await picture("offline");
    // The page still shows the last known state.
    await page.shows("Projected end");
    // Meanwhile, the last depths are dropped and searched again.
    await send("search-again 3");
    await send("start");
    const before = Number(await send("depths"));
    await send("grow 5");
    await page.until("document.getElementById('offline').hidden");
    await page.until(`document.querySelector(".well-title").textContent.startsWith("Depth ${(before + 5).toLocaleString("en-US")},")`);
    assert(page.expectErrors(...OFFLINE_ERRORS) > 0, "the browser reported no errors while the server was unreachable");
    const seconds = await savedSeconds(page);
    const changed = known.flatMap((value, index) => (value === seconds[index] ? [] : [index]));
    assert.deepEqual(changed, [before - 3, before - 2, before - 1]);
  },

  async "worker is drained after confirmation"(page) {
    await page.click(".workers button", "Drain c5d-1");
    await page.shows("Drain c5d-1?");
    await picture("dialog");
    await page.press("Escape");
    await page.until("!document.querySelector('dialog')");
    assert.equal(await send("drained"), "");
    await page.click(".workers button", "Drain c5d-1");
    await page.click("dialog button", "Drain");
    await page.shows("c5d-1 gets no shards after the current depth");
    assert.equal(await send("drained"), "c5d-1");
    await page.until("[...document.querySelectorAll('.workers tbody tr')].some((row) => row.innerText.includes('draining'))");
    await page.click("#nav a", "Workers");
    await page.shows("3 workers with 216 threads, $4.84 per hour, excluding 1 worker of unknown price");
    await picture("workers");
  },

  async "replay is played to its last piece"(page) {
    await page.goto(`${url}#/run/${FINISHED}`);
    await page.shows("The run was stopped at its cost limit.");
    await page.click("a", "Best game");
    await page.shows("148 lines in");
    const facts = () => page.evaluate("[...document.querySelectorAll('.player .facts dd')].map((e) => e.textContent)");
    // The player draws its first frame shortly after it appears.
    const pieces = await page.until("document.querySelectorAll('.player .facts dd')[1].textContent.split(' of ')[1]");
    assert.equal((await facts())[0], "S");
    await page.press("ArrowRight");
    await page.until("document.querySelectorAll('.keys .done').length === 1", "one key pressed");
    await page.click(".player button", "Next piece");
    await page.until("document.querySelectorAll('.player .facts dd')[1].textContent.startsWith('2 of')");
    await page.click(".player button", "Next key");
    await page.click(".player button", "Next key");
    await page.click(".player button", "Previous key");
    await page.until("document.querySelectorAll('.keys .done').length === 1", "one key pressed");
    await page.click(".player button", "Previous piece");
    await page.until("document.querySelectorAll('.keys .done').length === 0");
    await page.press("Home");
    // Play slowly, then at the highest speed to the end.
    await page.click(".player button", "Play");
    await page.until("document.querySelectorAll('.player .facts dd')[3].textContent.split(' ')[0] > 3");
    await page.click(".player button", "Pause");
    await page.evaluate("(() => { const e = document.getElementById('speed'); e.value = e.max; e.dispatchEvent(new Event('input')); })()");
    await page.shows("600 keys per second");
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
    await page.evaluate(collectDownloads);
    await page.evaluate(`
      window.copied = null;
      Object.defineProperty(navigator, "clipboard", { value: { writeText: async (text) => { window.copied = text; } } });
      true`);
    await page.click("button", "Copy as Base2048");
    await page.shows("Replay copied");
    const replay = await send("replay");
    assert.equal(await page.evaluate("window.copied"), replay);
    for (const text of ["Download Base2048", "Download keys", "Download JSON"]) await page.click("button", text);
    await page.until("window.saved.length === 3");
    const [file, letters, json] = await page.evaluate("window.saved");
    assert.equal(file.trim(), replay);
    assert.match(letters.trim(), /^[LRDU]+$/);
    assert.equal(JSON.parse(json).turns.length, JSON.parse(json).pieces);
    // Play the game to one depth of a run in progress.
    await page.goto(`${url}#/run/${RUNNING}/game/7`);
    await page.shows("Game to depth 7");
    await page.shows("148 lines in");
  },

  async "missing game and unknown run show an error"(page) {
    await send("no-games");
    await page.goto(`${url}#/run/${RUNNING}/game`);
    await page.shows("The game cannot be shown: this coordinator cannot read a game back before the run has ended");
    await page.click("button", "Try again");
    await page.shows("this coordinator cannot read a game back before the run has ended");
    await page.goto(`${url}#/run/no-such-run/game`);
    await page.shows("there is no run");
    await page.goto(`${url}#/run/no-such-run`);
    await page.shows("All runs");
    await page.shows('there is no run "no-such-run"');
    assert(await page.evaluate("document.getElementById('offline').hidden"), "the page reports a reachable coordinator as offline");
    assert(page.expectErrors(/status of (501|404)/) >= 4);
  },

  async "run is submitted with an estimate"(page) {
    await page.goto(`${url}#/submit`);
    await page.shows("60 s to 3 min");
    await page.shows("$0.08 to $0.20");
    await picture("submit");
    await page.fill("#width", "many");
    await page.shows("Enter a whole number of wells");
    await page.click("button", "Submit …");
    await page.until("document.activeElement.id === 'width'");
    assert(!await page.evaluate("document.querySelector('dialog')"));
    await page.fill("#width", "1M");
    await page.shows("No estimate: no speed is known");
    assert(page.expectErrors(/status of 400/) >= 1);
    await page.fill("#width", "250k");
    await page.fill("#maxDollars", "12.50");
    await page.fill("#maxHours", "1.5");
    await page.choose("#keep", "4");
    await page.shows("60 s to 3 min");
    await page.click("button", "Submit …");
    await page.shows("Start a run of width 250k?");
    await page.shows("It stops at $12.50 or 1.5 hours.");
    await picture("submit-dialog");
    await page.click("dialog button", "Start");
    await page.shows("The run is queued");
    await page.until("location.hash === '#/run/patterns-250000-fake'");
    await page.shows("queued");
    const { spec, keep, max_cost_micros: micros, max_seconds: seconds } = JSON.parse(await send("submitted"));
    const { evaluator, ...search } = JSON.parse(spec);
    assert.match(search.search, /^\d+-/, "the specification has no search fingerprint");
    delete search.search;
    assert.deepEqual(search, { width: 250_000, well: { columns: 10, rows: 16, clear_above_bar: false }, start: "empty" });
    // The page names the default network by its digest.
    assert.match(evaluator.kind.network, /^[0-9a-f]{64}$/, "the specification has no digest of the network");
    assert.equal(evaluator.quiescence, "off");
    assert.deepEqual([keep, micros, seconds], ["4", 12_500_000, 5400]);
    // Start a run from a position of a replay that applies the loop rule.
    await page.goto(`${url}#/submit`);
    await page.click("details summary");
    await page.choose("#loops", "exact");
    await page.choose("#start", "replay");
    await page.click("button", "Submit …");
    await page.shows("Paste the replay.");
    await page.fill("#startReplay", "௨ටໃݹ௨ටໃݹठ");
    await page.fill("#startPiece", "5");
    await page.click("button", "Submit …");
    await page.click("dialog button", "Start");
    await page.until("location.hash === '#/run/patterns-100000-fake'");
    const { loops, start } = JSON.parse(JSON.parse(await send("submitted")).spec);
    assert.equal(loops, "exact");
    assert.deepEqual(start, { replay: { base2048: "௨ටໃݹ௨ටໃݹठ", piece: 5 } });
  },

  async "limits of an open run are changed"(page) {
    await page.goto(`${url}#/run/${RUNNING}`);
    await page.click(".head button", "Limits …");
    await page.until("document.activeElement.id === 'maxDollars'");
    assert.equal(await page.evaluate("document.activeElement.value"), "2");
    await page.fill("#maxDollars", "-3");
    await page.click("dialog button", "Change");
    await page.shows("Enter a number above 0");
    for (const text of ["2,000", "1,000.5", "1,234,567"]) {
      await page.fill("#maxDollars", text);
      await page.click("dialog button", "Change");
      await page.shows("Enter the number without a comma");
      await page.fill("#maxDollars", "-3");
      await page.click("dialog button", "Change");
      await page.shows("Enter a number above 0");
    }
    await page.fill("#maxDollars", "7,5");
    await page.fill("#maxHours", "");
    await picture("limits");
    await page.click("dialog button", "Change");
    await page.shows("Limits changed");
    await page.shows("of $7.50");
    assert.equal(await send("limits"), "7500000 0");
  },

  async "run stopped at its cost limit resumes with a higher limit"(page) {
    await page.goto(`${url}#/run/${FINISHED}`);
    await page.click(".head button", "Resume");
    await page.shows("stopped at its cost limit: raise that limit");
    await page.fill("#maxDollars", "50");
    await page.click("dialog button", "Resume");
    await page.shows("The run is queued again");
    assert.equal(JSON.parse(await send("submitted")).max_cost_micros, 50_000_000);
    await restart(page, "busy");
  },

  async "run is stopped and resumed"(page) {
    await page.goto(`${url}#/run/${FINISHED}`);
    await page.shows("The run was stopped at its cost limit.");
    await page.evaluate(`location.hash = "#/run/${RUNNING}"; true`);
    await page.click(".head button", "Stop");
    await page.shows(`Stop run ${RUNNING}?`);
    await page.click("dialog button", "Not now");
    await page.until("!document.querySelector('dialog')");
    // The dialog closes when the user leaves the page.
    await page.click(".head button", "Stop");
    await page.evaluate("history.back(); true");
    await page.shows("The run was stopped at its cost limit.");
    await page.until("!document.querySelector('dialog')");
    await page.evaluate("history.forward(); true");
    await page.click(".head button", "Stop");
    // The dialog cannot be closed while the coordinator stops the run.
    await page.evaluate(`
      window.request = fetch;
      window.fetch = async (path, options) => {
        if (path.endsWith("/cancel")) await new Promise((resolve) => { window.proceed = resolve; });
        return request(path, options);
      };
      true`);
    await page.click("dialog button", "Stop the run");
    await page.until("window.proceed");
    for (let press = 0; press < 3; press += 1) await page.press("Escape");
    assert(await page.evaluate("document.querySelector('dialog').open && document.querySelector('dialog .buttons button').disabled"));
    await page.evaluate("proceed(); true");
    await page.until("document.querySelector('h1 .chip').textContent === 'cancelled'");
    await page.until("document.getElementById('link').textContent === 'ended'");
    await page.click(".head button", "Resume");
    await page.click("dialog button", "Resume");
    await page.shows("The run is queued again");
    assert.equal(JSON.parse(JSON.parse(await send("submitted")).spec).width, 1_000_000);
    await restart(page, "busy");
  },

  async "pages are accessible by keyboard and screen reader"(page) {
    for (const path of ["", "#/workers", "#/submit", `#/run/${RUNNING}`, `#/run/${FINISHED}/game`]) {
      await page.goto(url + path);
      await page.until("document.querySelector('main h1')");
      await page.until("document.querySelector('main').innerText.length > 150");
      await page.until(settled);
      const faults = await page.evaluate(`(() => {
        const faults = [];
        const name = (e) => (e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent || e.alt || "").trim();
        for (const e of document.querySelectorAll("button, a[href], input, select, [role=img], [role=region], meter, progress")) {
          if (e.checkVisibility() && name(e) === "") faults.push("no accessible name: " + e.outerHTML.slice(0, 120));
        }
        for (const e of document.querySelectorAll("img:not([alt])")) faults.push("no alt text: " + e.outerHTML);
        if (document.querySelectorAll("h1").length !== 1) faults.push("expected one h1");
        for (const tag of ["header", "nav[aria-label]", "main"]) if (!document.querySelector(tag)) faults.push("no " + tag);
        const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
        if (new Set(ids).size !== ids.length) faults.push("duplicate id");
        return faults;
      })()`);
      assert.deepEqual(faults, [], path);
    }
    // The first Tab focuses the skip link visibly, and the link moves the focus to the content.
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

  async "text has enough contrast in both themes"(page) {
    for (const scheme of ["light", "dark"]) {
      await page.prefer({ "prefers-color-scheme": scheme });
      await page.until(`document.documentElement.dataset.theme === "${scheme}"`);
      for (const path of ["", `#/run/${RUNNING}`, `#/run/${FINISHED}/game`, "#/submit"]) {
        await page.goto(`${url}${path}`);
        await page.until(settled);
        const faults = await page.evaluate(contrastFaults);
        assert.deepEqual(faults, [], `${scheme} ${path}`);
      }
    }
    // Take screenshots with a realistic number of depths.
    await restart(page, "busy 160");
    await page.goto(url);
    for (const scheme of ["light", "dark"]) {
      await page.prefer({ "prefers-color-scheme": scheme });
      await page.until(`document.documentElement.dataset.theme === "${scheme}"`);
      await page.goto(`${url}#/run/${RUNNING}`);
      await page.until("document.querySelectorAll('.u-wrap canvas').length === 6");
      await picture(`run-${scheme}`);
    }
    // The theme button overrides the system's theme, even after the page is reloaded.
    await page.prefer({ "prefers-color-scheme": "light" });
    await page.until("document.documentElement.dataset.theme === 'light'");
    const background = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await background();
    await page.click("#theme");
    await page.click("#theme");
    assert.equal(await page.evaluate("document.getElementById('theme').textContent"), "Dark");
    const dark = await background();
    assert.notEqual(light, dark);
    await page.send("Page.reload");
    await page.until("document.getElementById('theme')?.textContent === 'Dark'");
    assert.equal(await background(), dark);
    await page.click("#theme");
  },

  async "pages fit on a phone"(page) {
    await page.size(390, 844, true);
    for (const [path, name] of [["", "runs"], [`#/run/${RUNNING}`, "run"], [`#/run/${FINISHED}/game`, "player"], ["#/submit", "submit"], ["#/workers", "workers"]]) {
      await page.goto(`${url}${path}`);
      await page.until("document.querySelector('main').innerText.length > 150");
      await page.until(settled);
      const [wide, screen] = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]");
      assert(wide <= screen, `${name} is ${wide} px wide on a screen of ${screen} px`);
      const small = await page.evaluate(`[...document.querySelectorAll("main button, main a.button, main select")]
        .filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 32).map((e) => e.outerHTML.slice(0, 90))`);
      assert.deepEqual(small, [], name);
      await picture(`phone-${name}`);
    }
    await page.size(1280, 900);
  },

  async "reduced motion disables transitions"(page) {
    await page.prefer({ "prefers-reduced-motion": "reduce" });
    await page.goto(`${url}#/run/${FINISHED}/game`);
    await page.shows("148 lines in");
    const moving = await page.evaluate("[...document.querySelectorAll('*')].filter((e) => parseFloat(getComputedStyle(e).transitionDuration) > 0).length");
    assert.equal(moving, 0);
    await page.until("document.querySelectorAll('.player .facts dd')[3].textContent.startsWith('0 of')");
    await page.prefer({});
  },

  async "server with a token requires sign-in"(page) {
    await send("token");
    await page.goto(`${url}#/`);
    await page.shows("Enter the coordinator's token");
    await picture("sign-in");
    await page.fill("#token", "correct-horse-batterz");
    await page.press("Enter");
    await page.shows("wrong token");
    await page.fill("#token", TOKEN);
    await page.press("Enter");
    await page.shows(FINISHED);
    assert.equal(await page.evaluate("document.cookie"), "", "a script can read the cookie");
    await page.goto(`${url}#/run/${RUNNING}`);
    await page.shows("Projected end");
    // If the session ends, the sign-in page replaces the open dialog.
    await page.click(".head button", "Stop");
    await page.shows(`Stop run ${RUNNING}?`);
    const json = { method: "POST", headers: { "content-type": "application/json" }, body: "{}" };
    await page.evaluate(`fetch("api/v1/logout", ${JSON.stringify(json)}).then(() => document.querySelector("dialog .danger")?.click())`);
    await page.shows("Enter the coordinator's token");
    await page.until("!document.querySelector('dialog')");
    await page.fill("#token", TOKEN);
    await page.press("Enter");
    await page.shows("Projected end");
    await page.click("#sign-out");
    await page.shows("Enter the coordinator's token");
    page.expectErrors(/status of 401/, ...OFFLINE_ERRORS);
  },
};

/** Returns the durations of all depths from the page of a run, as texts. */
async function savedSeconds(page) {
  await page.evaluate(collectDownloads);
  await page.click("button", "Depths as CSV");
  const rows = (await page.until("window.saved[0]")).trim().split("\n").map((row) => row.split(","));
  const column = rows[0].indexOf("seconds");
  return rows.slice(1).map((row) => row[column]);
}

/** Returns an expression that counts the frames that the page draws in `ms` milliseconds. */
function framesIn(ms) {
  return `new Promise((resolve) => {
    let frames = 0;
    const end = performance.now() + ${ms};
    const tick = (now) => { frames += 1; if (now < end) requestAnimationFrame(tick); else resolve(frames); };
    requestAnimationFrame(tick);
  })`;
}

/** An expression that is true if the page has loaded its data. */
const settled = `document.querySelector("main").innerText.length > 150 && !/Reading the game back|Waiting for the/.test(document.querySelector("main").innerText)`;

/** An expression that makes the page collect the contents of its downloads in `saved`. */
const collectDownloads = `(() => {
  window.saved = [];
  if (window.collects) return;
  window.collects = true;
  const create = URL.createObjectURL;
  URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return create.call(URL, blob); };
})()`;

/** An expression that finds text whose contrast with its background is below 4.5, or below 3 for large text. */
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
