// Tests every tab and control of the pages. Usage: `games.mjs CHROMIUM PAGES_FOLDER [SCREENSHOTS_FOLDER]`. The Rust
// test that starts this script answers its requests with the native code (see session.mjs).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { Session } from "../../dashboard/tests/browser/session.mjs";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };
/** The dashboard's content security policy, with which the pages must also work. */
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'";

const folder = process.argv[3];
const server = createServer((request, response) => {
  const name = request.url === "/" ? "index.html" : request.url.slice(1);
  try {
    const bytes = readFileSync(join(folder, name));
    response.writeHead(200, { "content-type": TYPES[extname(name)] ?? "application/octet-stream", "content-security-policy": POLICY });
    response.end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${server.address().port}/`;
const session = await Session.open(url);
const { page, picture } = session;
const EMPTY = "0".repeat(48);

/** Returns the native code's answer to a request. */
async function native(request) {
  const { value, error } = JSON.parse(await session.send(JSON.stringify(request)));
  assert.equal(error, undefined);
  return value;
}

const text = (selector) => page.evaluate(`document.querySelector(${JSON.stringify(selector)}).textContent`);
const texts = (selector) => page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].filter((e) => e.checkVisibility()).map((e) => e.textContent)`);
/** Waits until the text of “Piece” begins with `start`. */
const piece = (start) => page.until(`document.querySelector('.score > div:last-child dd').textContent.startsWith('${start}')`);
const score = (lines) => page.until(`document.querySelector('.score > div:first-child dd').textContent === '${lines}'`);
/** Waits until the status text of the perfect clears contains `words`. */
const status = (words) => page.until(`document.querySelector('.clears [role=status]').textContent.includes('${words}')`);
const number = (value) => value.toLocaleString("en-US");

/** Checks that the list shows the scores that the native code computes for the game. */
async function compareScores(evaluator) {
  const expected = await native({ call: "scores", evaluator });
  const shown = await texts(".game .move .value");
  assert.deepEqual(shown, expected.map(({ score }) => (score === null ? "ends the game" : number(score))));
}

const steps = {
  async "keyboard plays and shows the enemy's reasons"() {
    await page.goto(url);
    await page.shows("The enemy’s reason");
    for (const key of ["ArrowLeft", "ArrowLeft", "ArrowDown", "ArrowRight", "ArrowUp", " ", "ArrowRight", " "]) await page.press(key);
    await native({ call: "start", enemy: "hatetris" });
    const state = await native({ call: "press", keys: "LLDRUHRH" });
    await piece(`3, ${state.piece}`);
    const rows = await page.evaluate("[...document.querySelectorAll('.reasons tbody tr')].map((row) => [row.querySelector('.letter').textContent, row.querySelector('.height').textContent, row.lastChild.textContent].join(' '))");
    assert.deepEqual(rows, state.reasons.map(({ piece, height, loops }) => `${piece} ${height} ${loops}`));
    assert.equal(await page.evaluate("document.querySelectorAll('.reasons .given').length"), 1);
    assert.match(await text("#announcer"), /^Piece 3: /);
    await compareScores("patterns");
    await picture("hatetris");
    await page.press("z");
    await piece("2,");
    await page.press("Backspace");
    await piece("1,");
  },

  async "buttons and touch control the game"() {
    for (const label of ["Left", "Turn", "Right", "Down", "Drop"]) await page.click("button", label);
    await piece("2,");
    await page.click("button", "Undo");
    await piece("1,");
    // A slow drag to the left moves, a tap turns, and a swipe down drops.
    const box = await page.evaluate("(() => { const b = document.querySelector('canvas.field').getBoundingClientRect(); return { x: b.x, y: b.y, width: b.width }; })()");
    const [x, y, cell] = [box.x + box.width / 2, box.y + 60, box.width / 10];
    const mouse = (type, px, py) => page.send("Input.dispatchMouseEvent", { type, x: px, y: py, button: "left", buttons: 1, clickCount: 1 });
    const label = () => page.evaluate("document.querySelector('canvas.field').getAttribute('aria-label')");
    const before = await label();
    await mouse("mousePressed", x, y);
    await mouse("mouseMoved", x - 1.2 * cell, y);
    await mouse("mouseReleased", x - 1.2 * cell, y);
    await page.until(`document.querySelector('canvas.field').getAttribute('aria-label') !== ${JSON.stringify(before)}`);
    await mouse("mousePressed", x, y);
    await mouse("mouseReleased", x, y);
    await mouse("mousePressed", x, y);
    for (let row = 1; row <= 5; row += 1) await mouse("mouseMoved", x, y + row * cell);
    await mouse("mouseReleased", x, y + 5 * cell);
    await piece("2,");
  },

  async "every evaluator scores the placements"() {
    await native({ call: "start", enemy: "hatetris" });
    await page.click("button", "New game");
    for (const evaluator of ["knewjade", "plain", "network", "patterns"]) {
      await page.choose("#opinion", evaluator);
      await page.until("document.querySelector('.game .panel .note').textContent !== '' && !document.body.innerText.includes('Loading')");
      await page.until(`document.querySelectorAll('.game .move').length === 17`);
      await compareScores(evaluator);
    }
    const [best] = await native({ call: "scores", evaluator: "patterns" });
    const state = await native({ call: "place", well: best.well });
    await page.click(".game .move");
    await piece("2,");
    await compareScores("patterns");
    await piece(`2, ${state.piece}`);
  },

  async "page explains the pieces of every enemy"() {
    for (const [enemy, sentence] of [["mild", "you cannot leave a stack lower"], ["lovetris", "always gives I"], ["burgiel", "alternately"], ["brzustowski", "until a well repeats"], ["hatetris", "you cannot leave a stack lower"]]) {
      await page.choose("#enemy", enemy);
      await page.shows(sentence);
      // Every game begins with the same well, but not with the same piece.
      await native({ call: "start", enemy });
      await compareScores("patterns");
    }
  },

  async "replays are loaded, played and saved in every encoding"() {
    const replay = readFileSync(new URL("../../examples/records/network-78.txt", import.meta.url), "utf8").trim();
    const loaded = await native({ call: "load", text: replay, enemy: null });
    const saved = await native({ call: "save" });
    for (const encoding of ["base2048", "base65536", "hex", "raw"]) {
      await page.fill("#replay", saved[encoding]);
      await page.click("button", "Load");
      await page.shows(`in ${encoding}`);
      assert.equal(await page.evaluate("document.querySelector('#encoding').value"), encoding);
    }
    await page.click("button", "Last key");
    await page.shows("game over");
    await score(78);
    await picture("replay");
    for (const encoding of ["base2048", "base65536", "hex", "raw"]) {
      await page.choose("#encoding", encoding);
      await page.click("button", "Copy the replay");
      await page.until(`document.querySelector('#replay').value === ${JSON.stringify(saved[encoding])}`, encoding);
    }
    await page.click("button", "Previous piece");
    await page.until(`Number(document.querySelector('[aria-label=Position]').value) < ${loaded.state.keys}`);
    await page.click("button", "Next piece");
    await page.shows("game over");
    await page.click("button", "First key");
    await page.until("document.querySelector('[aria-label=Position]').value === '0'");
    await page.choose("#speed", "6");
    await page.shows("1,000 keys a second");
    await page.click("button", "Play");
    await page.until("Number(document.querySelector('[aria-label=Position]').value) > 500");
    await page.click("button", "Pause");
    await page.choose("[aria-label=Position]", "700");
    await page.shows("Key 700 of");
    // A key in the middle of the replay replaces the rest.
    await page.click("button", "Drop");
    await page.until("(() => { const p = document.querySelector('[aria-label=Position]'); return p.value === p.max; })()");
    await page.fill("#replay", "not a replay ?");
    await page.click("button", "Load");
    await page.shows("not valid in a replay");
  },

  async "best game of a beam search is played"() {
    await page.click("button", "New game");
    await page.choose("#beam-width", "100");
    await page.choose("#beam-evaluator", "patterns");
    await page.click("button", "Search from here");
    await page.shows("Ended: every game is over");
    let expected = await native({ call: "beam-start", well: EMPTY, lines: 0, width: 100, evaluator: "patterns" });
    while (expected.end === null) expected = await native({ call: "beam-run", depths: 100 });
    const facts = await texts(".beam .facts dd");
    assert.deepEqual(facts.slice(0, 4), [expected.depth, expected.lines, expected.best.score, expected.wells].map(number));
    await picture("beam");
    await native({ call: "start", enemy: "hatetris" });
    const followed = await native({ call: "follow", wells: await native({ call: "beam-path" }) });
    await page.click("button", "Play the best game");
    await page.shows("to play.");
    await page.click("button", "Last key");
    await page.until(`document.querySelector('[aria-label=Position]').max === '${followed.state.keys}'`);
    const end = await native({ call: "seek", to: followed.state.keys });
    await score(end.score);
    // A wide beam can be stopped, and the game to its best well can be played.
    await page.click("button", "New game");
    await page.choose("#beam-width", "5000");
    await page.choose("#beam-evaluator", "network");
    await page.click("button", "Search from here");
    await page.shows("Searching …");
    await page.until("Number(document.querySelector('.beam .facts dd').textContent) > 5");
    // A second click before the pending answer does not start another search.
    await page.evaluate("(() => { const stop = [...document.querySelectorAll('.tab:not([hidden]) button')].find((e) => e.textContent === 'Stop'); stop.click(); stop.click(); })()");
    await page.shows("Stopped.");
    await page.click("button", "Play the best game");
    await page.shows("to play.");
    // The best game does not replace another game.
    const take = "[...document.querySelectorAll('button')].find((button) => button.textContent === 'Play the best game')";
    assert.equal(await page.evaluate(`${take}.disabled`), false);
    await page.click("button", "New game");
    assert.equal(await page.evaluate(`${take}.disabled`), true);
    // If the keys before the search have changed, the best game changes nothing.
    await page.click("button", "Drop");
    await page.choose("#beam-width", "10");
    await page.choose("#beam-evaluator", "patterns");
    await page.click("button", "Search from here");
    await page.shows("Ended: every game is over");
    await page.click("button", "Undo");
    for (const key of ["Left", "Left", "Drop"]) await page.click("button", key);
    const position = "(({ value, max }) => `${value} of ${max}`)(document.querySelector('[aria-label=Position]'))";
    const before = await page.evaluate(position);
    await page.click("button", "Play the best game");
    await page.shows("continues another well");
    assert.equal(await page.evaluate(position), before);
  },

  async "chances of perfect clears equal native results"() {
    await page.click("#nav a", "Perfect clears");
    await page.shows("First moves");
    await page.click("label.check");
    assert.equal(await page.evaluate("document.querySelector('#auto').checked"), false);
    await paintField();
    await page.choose("#hold", "T");
    await page.fill("#queue", "I");
    await page.fill("#bag", "JLOSZ");
    const rows = ["XXXXX____X", "XXXXXX___X", "XXXXXXX__X", "XXXXXX___X"];
    for (const kicks of ["nokick", "srs+180j", "srs+180t", "srsplus", "srs"]) {
      await page.choose("#kicks", kicks);
      await page.click("button", "Compute chances");
      await status("first moves in");
      const expected = await native({ call: "pc-chance", rows, lines: 4, seen: "TI", left_in_bag: "JLOSZ", kicks, drop: "soft" });
      assert.deepEqual(await texts(".clears .move .letter"), expected.moves.map(({ piece }) => piece));
      const titles = await page.evaluate("[...document.querySelectorAll('.clears .move .value')].map((e) => e.title)");
      assert.deepEqual(titles, expected.moves.map(({ adaptive }) => `adaptive ${adaptive}`));
      const others = await page.evaluate("[...document.querySelectorAll('.clears .move .behind')].map((e) => e.title)");
      assert.deepEqual(others, expected.moves.map(({ clairvoyant }) => `clairvoyant ${clairvoyant}`));
    }
    await page.choose("#drop", "hard");
    await page.click("button", "Compute chances");
    await status("first moves in");
    await page.choose("#drop", "soft");
    await page.click("button", "Compute chances");
    await status("first moves in");
    await picture("clears");
  },

  async "move is played and taken back"() {
    const seen = await page.evaluate("[document.querySelector('#hold').value, document.querySelector('#queue').value]");
    await page.click(".clears .move");
    await page.until("document.querySelector('#queue').value !== 'I' || document.querySelector('#hold').value !== 'T'");
    const after = await page.evaluate("document.querySelector('#hold').value + document.querySelector('#queue').value");
    assert.equal(after.length, 2, "no piece has been dealt");
    await page.click("button", "Take back");
    assert.deepEqual(await page.evaluate("[document.querySelector('#hold').value, document.querySelector('#queue').value]"), seen);
    await page.click("button", "Deal a piece");
    assert.equal((await page.evaluate("document.querySelector('#queue').value")).length, 2);
  },

  async "known queue is solved"() {
    await page.click("button", "Empty field");
    await page.choose("#hold", "");
    await page.fill("#queue", "SOLTZJIZLSI");
    await page.fill("#bag", "");
    await page.click("button", "Solve the known queue");
    await status("Perfect clear found");
    const expected = await native({ call: "pc-solve", rows: new Array(4).fill("_".repeat(10)), lines: 4, queue: "SOLTZJIZLSI", hold: true, held: false, kicks: "srs", drop: "soft" });
    assert.equal((await texts(".grid .cell")).join(""), expected.picture.join(""));
    assert.equal((await texts(".keys-list li")).length, 10);
    await picture("solution");
    await page.click("button", "Copy the Fumen code");
    await page.shows("Fumen copied");
    await page.fill("#queue", "SZSZSZSZSZS");
    await page.click("button", "Solve the known queue");
    await status("has no perfect clear");
    await page.fill("#queue", "SO");
    await page.click("button", "Solve the known queue");
    await page.shows("queue has 2");
  },

  async "computation stops on request and restarts after a change"() {
    await page.click("button", "Empty field");
    await page.fill("#queue", "IJLOSTZ");
    await page.click("button", "Compute chances");
    // The first preliminary answer arrives before the chances of all moves.
    await status("The best move so far is");
    await page.click("button", "Stop");
    await status("Stopped.");
    await page.choose("#lines", "2");
    assert.equal(await page.evaluate("document.querySelectorAll('.grid .cell').length"), 20);
    await page.click("label.check");
    await page.fill("#queue", "IJLOST");
    await status("first moves in");
    // Arrow keys move within the field, and the space bar fills a cell.
    await page.evaluate("document.querySelector('.grid .cell').focus()");
    for (const key of ["ArrowRight", "ArrowDown", " "]) await page.press(key);
    await page.until("document.querySelectorAll('.grid .cell')[11].getAttribute('aria-pressed') === 'true'");
    await page.click("label.check");
  },

  async "searches play a match of Nintendo Tetris"() {
    await page.click("#nav a", "Agents");
    await page.shows("Player 1");
    await page.choose("#agent-1", "");
    await page.choose("#moves", "6");
    await page.click("button", "Play");
    await page.shows("The match is over");
    // The result of the first published game.
    await page.shows("bfs: 855,780 points, 212 lines");
    // Two clicks on Play, before the match has started again, start it once: it can be paused.
    await page.choose("#moves", "4");
    await page.evaluate("(() => { const play = document.querySelector('.tab:not([hidden]) [aria-label=Play]'); play.click(); play.click(); })()");
    const moves = "Number(document.querySelector('.board .facts').textContent.match(/Pieces([0-9]+)/)[1])";
    await page.until(`${moves} > 2 && ${moves} < 500`);
    await page.click("button", "Pause");
    const paused = await page.evaluate(`new Promise((done) => setTimeout(() => { const before = ${moves}; setTimeout(() => done([before, ${moves}]), 500); }, 500))`);
    assert.equal(paused[0], paused[1], "the match is still played");
    await page.choose("#agent-1", "branching");
    // The first move waits until the match has started again.
    await page.click("button", "Start again");
    for (let move = 0; move < 3; move += 1) {
      await page.click("button", "One move");
      await page.until(`[...document.querySelectorAll('.board .facts')].every((e) => e.textContent.includes('Pieces${move + 1}'))`);
    }
    await picture("agents");
    await page.choose("#generator", "cartridge");
    await page.until("[...document.querySelectorAll('.board .facts')].every((e) => e.textContent.includes('Pieces0'))");
  },

  async "agents play dropped pieces with changed weights"() {
    await page.choose("#game", "drop");
    await page.choose("#seed", "3");
    await page.until("document.querySelector('#agent-0').value === 'bcts'");
    await page.click(".player-panel summary");
    await page.choose("#weight-0-0", "-25.26");
    const input = await page.evaluate("Number(document.querySelector('#weight-0-0').value)");
    await page.click("button", "Start again");
    await page.until("[...document.querySelectorAll('.board .facts')].every((e) => e.textContent.includes('Pieces0'))");
    for (let move = 0; move < 12; move += 1) {
      await page.click("button", "One move");
      await page.until(`[...document.querySelectorAll('.board .facts')].every((e) => e.textContent.includes('Pieces${move + 1}'))`);
    }
    const [bcts] = (await native({ call: "agents" })).filter(({ name }) => name === "bcts");
    const weights = bcts.weights.map(([, value]) => value);
    weights[0] = input;
    await native({ call: "watch", game: "drop", seed: 3, generator: "uniform", players: [{ agent: "bcts", weights }, { agent: "two-piece" }] });
    const boards = await native({ call: "watch-move", moves: 12 });
    const labels = await page.evaluate("[...document.querySelectorAll('.board canvas')].map((e) => e.getAttribute('aria-label'))");
    boards.forEach((board, index) => assert(labels[index].includes(`${board.lines} line`) && labels[index].includes("12 pieces"), labels[index]));
    await page.click("button", "Copy the weights");
    await page.shows("Weights copied");
    await page.click("button", "Published weights");
    await page.choose("#pieces", "small");
    for (const agent of ["random", "heuristic", "dellacherie", "expectimax"]) {
      await page.choose("#agent-1", agent);
      await page.until("[...document.querySelectorAll('.board .facts')].every((e) => e.textContent.includes('Pieces0'))");
      await page.click("button", "One move");
      await page.until("[...document.querySelectorAll('.board .facts')].every((e) => e.textContent.includes('Pieces1'))");
    }
    await page.choose("#generator", "bag");
    await page.choose("#moves", "4");
    // The time of a frame can be earlier than the click. Make all of them earlier.
    await page.evaluate("window.request = requestAnimationFrame; window.requestAnimationFrame = (work) => request((now) => work(now - 100)); true");
    await page.click("button", "Play");
    await page.until("Number(document.querySelector('.board .facts').textContent.match(/Pieces([0-9]+)/)[1]) > 20");
    await page.click("button", "Pause");
    await page.evaluate("window.requestAnimationFrame = window.request; true");
  },

  async "means of many games equal native results"() {
    await page.choose("#generator", "uniform");
    await page.choose("#pieces", "standard");
    await page.choose("#agent-1", "heuristic");
    await page.choose("#games", "5");
    await page.choose("#most", "300");
    await page.click("button", "Play the games");
    await page.shows("5 of 5 games. Player 2 is better in");
    await native({ call: "many", game: "drop", seed: 3, generator: "uniform", most_pieces: 300, players: [{ agent: "bcts" }, { agent: "heuristic" }] });
    const { players } = await native({ call: "many-play", games: 5 });
    const figures = players.flatMap(({ games, mean, half_width: half, median, max }) => [games, mean, half, median, max]);
    assert.deepEqual(await texts(".many td"), figures.map((value) => number(Math.round(value * 100) / 100)));
    await page.choose("#games", "1000");
    await page.click("button", "Play the games");
    await page.shows("of 1,000 games");
    await page.click("button", "Stop");
    await page.until("[...document.querySelectorAll('.many button')].some((e) => e.textContent === 'Play the games')");
  },

  async "narrow and dark windows have no horizontal scroll bar"() {
    for (const [width, height, mobile] of [[390, 844, true], [820, 1180, true], [1440, 900, false]]) {
      await page.size(width, height, mobile);
      for (const theme of ["light", "dark"]) {
        await page.prefer({ "prefers-color-scheme": theme });
        for (const tab of ["hatetris", "clears", "agents"]) {
          await page.evaluate(`location.hash = "${tab}"; true`);
          await page.until(`!document.querySelector('.tab[aria-label]:not([hidden])').hidden && document.documentElement.dataset.theme === "${theme}"`);
          // The layout settles a moment after the window, the theme or the tab has changed.
          await page.until(`document.documentElement.scrollWidth <= ${width}`).catch(async () => {
            const right = "e.getBoundingClientRect().right";
            const wide = `[...document.body.querySelectorAll("*")].filter((e) => ${right} > ${width}).map((e) => e.outerHTML.slice(0, 100))`;
            assert.fail(`${tab} is wider than the window of ${width} pixels: ${await page.evaluate(wide)}`);
          });
          await picture(`${tab}-${width}-${theme}`, { whole: true });
        }
      }
    }
    await page.size(1280, 900);
  },

  async "every control has a name"() {
    for (const tab of ["hatetris", "clears", "agents"]) {
      await page.evaluate(`location.hash = "${tab}"; true`);
      const nameless = await page.evaluate(`[...document.querySelectorAll("button, input, select, textarea")]
        .filter((e) => e.checkVisibility() && !e.textContent.trim() && !e.getAttribute("aria-label") && !e.labels?.length).map((e) => e.outerHTML)`);
      assert.deepEqual(nameless, []);
    }
    // Every object has a property with this name, but no tab.
    await page.evaluate(`location.hash = "constructor"; true`);
    await page.until("document.title === 'HATETRIS – hatebeam'");
  },
};

/** Fills the example field with clicks and drags. */
async function paintField() {
  const widths = [5, 6, 7, 6];
  const box = (cell) => page.evaluate(`(() => { const b = document.querySelectorAll('.grid .cell')[${cell}].getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()`);
  for (const [row, width] of widths.entries()) {
    const mouse = async (type, cell) => {
      const [x, y] = await box(cell);
      await page.send("Input.dispatchMouseEvent", { type, x, y, button: "left", buttons: 1, clickCount: 1 });
    };
    await mouse("mousePressed", row * 10);
    for (let column = 1; column < width; column += 1) await mouse("mouseMoved", row * 10 + column);
    await mouse("mouseReleased", row * 10 + width - 1);
    await mouse("mousePressed", row * 10 + 9);
    await mouse("mouseReleased", row * 10 + 9);
  }
}

for (const [name, work] of Object.entries(steps)) await session.step(name, () => work());
await session.close();
server.close();
