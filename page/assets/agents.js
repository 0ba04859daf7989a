// The tab on which agents play Nintendo Tetris and dropped pieces. One agent plays alone, or two get the same pieces.

import { announce, copy, h, oncePerFrame, setChildren, setText, show, toast } from "./dom.js";
import { count, number } from "./figures.js";
import { iconButton, setIcon } from "./icons.js";
import { ManyPanel } from "./many.js";
import { Remote, Stopped } from "./remote.js";
import { cellsOf, draw, valueOf } from "./well.js";

const WIDTH = 10;
const GAMES = { nes: "Nintendo Tetris", drop: "Dropped pieces" };
const GENERATORS = {
  nes: { article: "published sets", cartridge: "cartridge" },
  drop: { uniform: "uniform", bag: "bags of all pieces" },
};
/** Moves per second at the positions of the slider. */
const SPEEDS = [1, 3, 10, 30, 100, 300, 1000];
/** Target duration of a request to the worker, in milliseconds. */
const SLICE = 50;
/** Delay between a change of the seed or of a weight and the restart of the match, in milliseconds. */
const PAUSE = 250;

class Player {
  constructor(tab, index) {
    this.tab = tab;
    this.index = index;
    const id = `agent-${index}`;
    this.agent = h("select", { id, oninput: () => this.choose() });
    this.sliders = h("div", { className: "sliders" });
    this.details = h("details", {}, h("summary", {}, "Weights"), this.sliders,
      h("div", { className: "buttons" },
        h("button", { type: "button", className: "small", onclick: () => this.choose() }, "Published weights"),
        h("button", { type: "button", className: "small", onclick: () => this.save() }, "Copy the weights")));
    this.note = h("p", { className: "note" });
    this.canvas = h("canvas", { role: "img" });
    this.facts = h("dl", { className: "facts" });
    this.board = h("div", { className: "board" }, h("div", { className: "screen" }, this.canvas), this.facts);
    this.element = h("section", { className: "panel player-panel", "aria-label": `Player ${index + 1}` },
      h("div", { className: "row" }, h("label", { for: id }, `Player ${index + 1}`), this.agent), this.note, this.board, this.details);
    this.weights = [];
  }

  /** Fills the list with the agents for a game, and selects the agent `wanted`. */
  offer(agents, game, wanted) {
    const own = agents.filter((agent) => agent.game === game);
    const none = this.index > 0 ? [h("option", { value: "" }, "no agent")] : [];
    setChildren(this.agent, none, own.map(({ name }) => h("option", { value: name }, name)));
    this.agent.value = wanted;
    this.setAgent();
  }

  get info() {
    return this.tab.agents.find((agent) => agent.game === this.tab.game.value && agent.name === this.agent.value);
  }

  choose() {
    this.setAgent();
    this.tab.restart();
  }

  setAgent() {
    const { info } = this;
    this.weights = info?.weights.map(([, value]) => value) ?? [];
    setText(this.note, info?.description ?? "");
    show(this.details, this.weights.length > 0);
    show(this.board, info !== undefined);
    setChildren(this.sliders, info?.weights.map(([name, value], index) => this.slider(name, value, index)) ?? []);
  }

  slider(name, value, index) {
    const id = `weight-${this.index}-${index}`;
    const reach = Math.max(Math.abs(value) * 2, this.tab.game.value === "nes" ? 20 : 1);
    const output = h("output", { for: id }, value.toFixed(2));
    const input = h("input", {
      type: "range", id, min: -reach, max: reach, step: reach / 200, oninput: () => {
        this.weights[index] = Number(input.value);
        setText(output, this.weights[index].toFixed(2));
        this.tab.restartSoon();
      },
    });
    input.value = value;
    return h("div", { className: "slider" }, h("label", { for: id }, name.replaceAll("_", " ")), input, output);
  }

  save() {
    const names = this.info.weights.map(([name]) => name);
    copy(JSON.stringify(Object.fromEntries(names.map((name, index) => [name, this.weights[index]])), null, 2), "Weights");
  }

  /** The selected agent and its weights, or null if no agent is selected. */
  get start() {
    return this.info ? { agent: this.agent.value, weights: this.weights } : null;
  }

  show(state) {
    this.state = state;
    const facts = {
      ...(state.level === null ? {} : { Score: number(state.score) }),
      Lines: number(state.lines),
      Pieces: number(state.pieces),
      ...(state.level === null ? {} : { Level: String(state.level) }),
      Next: `${state.piece} ${state.next}`,
      State: state.complete ? "complete" : state.over ? "lost" : "playing",
    };
    setChildren(this.facts, Object.entries(facts).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    this.paint();
  }

  paint() {
    const { state } = this;
    if (!state || this.board.hidden) return;
    const { rows, last, last_piece: piece } = state;
    // Colour the last piece only if all of its cells are still filled: a cleared row shifts or removes cells.
    const cells = cellsOf(rows, WIDTH);
    const isThere = last.every(([x, y]) => cells[y * WIDTH + x] !== 0);
    draw(this.canvas, { cells, width: WIDTH, falling: isThere ? last : [], piece: valueOf(piece) || 8 });
    this.canvas.setAttribute("aria-label", `Board of player ${this.index + 1}, ${this.agent.value}: ${count(state.lines, "line")}, ${count(state.pieces, "piece")}`);
  }
}

export class AgentsTab {
  constructor(section, engine) {
    this.section = section;
    this.agents = engine.call({ call: "agents" });
    this.remote = new Remote();
    this.animation = null;
    /** Whether this tab is shown. */
    this.isShown = false;
    /** Number of matches started. It identifies the answers that belong to the current match. */
    this.number = 0;
    /** Resolves when the current match has started, or could not be started. */
    this.started = Promise.resolve();
    this.game = h("select", { id: "game", oninput: () => this.changeGame() }, ...Object.entries(GAMES).map(([value, text]) => h("option", { value }, text)));
    this.generator = h("select", { id: "generator", oninput: () => this.restart() });
    this.pieces = h("select", { id: "pieces", oninput: () => this.restart() },
      h("option", { value: "standard" }, "seven tetrominoes"), h("option", { value: "small" }, "one to four cells"));
    this.piecesEntry = h("span", { className: "row" }, h("label", { for: "pieces" }, "Set"), this.pieces);
    this.seed = h("input", { type: "number", id: "seed", min: 0, max: 4294967295, value: 205, oninput: () => this.restartSoon() });
    this.speed = h("input", { type: "range", id: "moves", min: 0, max: SPEEDS.length - 1, value: 2, oninput: () => this.showSpeed() });
    this.speedText = h("output", { for: "moves" });
    this.button = iconButton("Play", "play", () => this.toggle(), "play");
    this.status = h("p", { className: "note", role: "status" });
    this.many = new ManyPanel(this);
    this.players = [new Player(this, 0), new Player(this, 1)];
    this.draw = oncePerFrame(() => this.players.forEach((player) => player.paint()));
    this.build();
    this.showSpeed();
    this.changeGame();
  }

  build() {
    const entry = (id, label, ...controls) => h("span", { className: "row" }, h("label", { for: id }, label), controls);
    this.match = h("div", { className: "match" }, this.players.map((player) => player.element));
    this.section.append(
      h("h1", { className: "unseen" }, "Agents"),
      h("div", { className: "panel bar" },
        entry("game", "Game", this.game), entry("generator", "Pieces", this.generator), this.piecesEntry, entry("seed", "Seed", this.seed),
        h("span", { className: "row" }, this.button, iconButton("One move", "next", () => this.single()), iconButton("Start again", "first", () => this.restart())),
        entry("moves", "Speed", this.speed, this.speedText)),
      this.status, this.match, this.many.element);
  }

  changeGame() {
    const game = this.game.value;
    setChildren(this.generator, Object.entries(GENERATORS[game]).map(([value, text]) => h("option", { value }, text)));
    show(this.piecesEntry, game === "drop");
    show(this.many.mostEntry, game === "drop");
    const [one, two] = game === "nes" ? ["bfs", "branching"] : ["bcts", "two-piece"];
    this.players[0].offer(this.agents, game, one);
    this.players[1].offer(this.agents, game, two);
    this.restart();
  }

  restartSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.restart(), PAUSE);
  }

  async restart() {
    clearTimeout(this.timer);
    this.number += 1;
    this.isOver = false;
    if (this.remote.isBusy) this.remote.stop();
    this.playing = this.players.filter((player) => player.start !== null);
    this.match.classList.toggle("two", this.playing.length === 2);
    this.started = this.ask({ ...this.start, call: "watch" });
    await this.started;
  }

  /** Fields of a request that starts a match or a series of games. */
  get start() {
    return {
      game: this.game.value,
      seed: Math.min(4294967295, Math.max(0, Math.trunc(Number(this.seed.value)) || 0)),
      generator: this.generator.value,
      pieces: this.pieces.value,
      players: this.players.map((player) => player.start).filter((start) => start !== null),
    };
  }

  /** Sends a request and shows the boards in its answer. Returns false if the request fails or another match has started. */
  async ask(request) {
    const { number: match } = this;
    try {
      const boards = await this.remote.call(request);
      if (match !== this.number) return false;
      boards.forEach((board, index) => this.playing[index].show(board));
      this.isOver = boards.every((board) => board.over);
      this.compare(boards);
      return true;
    } catch (error) {
      if (!(error instanceof Stopped)) {
        this.pause();
        toast(error.message, "bad");
      }
      return false;
    }
  }

  compare(boards) {
    if (!this.isOver) {
      setText(this.status, boards.length < 2 ? "" : `${leader(boards, this.playing)}`);
      return;
    }
    this.pause();
    const results = boards.map((board, index) => `${this.playing[index].agent.value}: ${result(board)}`);
    const text = `The match is over. ${results.join("; ")}.`;
    if (this.status.textContent !== text) announce(text);
    setText(this.status, text);
  }

  get movesPerSecond() {
    return SPEEDS[Number(this.speed.value)];
  }

  showSpeed() {
    setText(this.speedText, `${count(this.movesPerSecond, "move")} a second`);
  }

  async single() {
    this.pause();
    // Another match can start while this one does.
    let started = null;
    while (started !== this.started) {
      started = this.started;
      await started;
    }
    if (!this.remote.isBusy) await this.ask({ call: "watch-move", moves: 1 });
  }

  toggle() {
    if (this.animation !== null) this.pause();
    else this.play();
  }

  async play() {
    if (this.isOver) {
      const started = this.restart();
      const { number: match } = this;
      await started;
      // Meanwhile, the match can have been played already, another match can have started, or the tab can have been left.
      if (this.animation !== null || match !== this.number || !this.isShown) return;
    }
    let last = performance.now();
    let due = 0;
    let most = 1;
    const frame = async (now) => {
      this.animation = requestAnimationFrame(frame);
      due = Math.min(due + (now - last) * this.movesPerSecond / 1000, Math.max(2 * most, 1));
      last = now;
      const moves = Math.min(Math.floor(due), most);
      // The first frame can have begun before `last`, so `due` can be negative.
      if (moves < 1 || this.remote.isBusy) return;
      due -= moves;
      const before = performance.now();
      await this.ask({ call: "watch-move", moves });
      const spent = performance.now() - before;
      most = Math.max(1, Math.min(100, spent > SLICE ? Math.floor(moves / 2) : most * 2));
    };
    this.animation = requestAnimationFrame(frame);
    setIcon(this.button, "Pause", "pause");
  }

  pause() {
    if (this.animation === null) return;
    cancelAnimationFrame(this.animation);
    this.animation = null;
    setIcon(this.button, "Play", "play");
  }

  enter() {
    this.isShown = true;
    addEventListener("resize", this.draw);
    addEventListener("theme", this.draw);
    this.draw();
  }

  leave() {
    this.isShown = false;
    this.pause();
    removeEventListener("resize", this.draw);
    removeEventListener("theme", this.draw);
  }
}

function result({ level, score, lines, pieces }) {
  return level === null ? `${count(lines, "line")} in ${count(pieces, "piece")}` : `${number(score)} points, ${count(lines, "line")}`;
}

function leader(boards, players) {
  const [one, two] = boards.map(({ score }) => score);
  if (one === two) return "Equal scores.";
  const ahead = one > two ? 0 : 1;
  const unit = boards[0].level === null ? "line" : "point";
  return `${players[ahead].agent.value} is ${count(Math.abs(one - two), unit)} ahead.`;
}
