// The tab on which HATETRIS is played: the well, its keys, and the panels beside it.

import { BeamPanel } from "./beam.js";
import { announce, h, oncePerFrame, setText, toast } from "./dom.js";
import { count } from "./figures.js";
import { addTouch } from "./gestures.js";
import { OpinionPanel } from "./opinions.js";
import { ReasonPanel } from "./reasons.js";
import { ReplayPanel } from "./replay.js";
import { cellsOf, draw, stackHeight, valueOf } from "./well.js";

const WIDTH = 10;
/** Number of rows above the bar. */
const ABOVE = 4;
const ENEMIES = {
  hatetris: "HATETRIS",
  mild: "HATETRIS Mild",
  brzustowski: "Brzustowski",
  burgiel: "Burgiel",
  lovetris: "LOVETRIS",
};
/** Letters of the game's keys, by keyboard key. H drops and locks the piece. */
const KEYS = {
  ArrowLeft: "L", ArrowRight: "R", ArrowDown: "D", ArrowUp: "U", " ": "H",
  a: "L", d: "R", s: "D", w: "U",
};

export class HatetrisTab {
  constructor(section, engine) {
    this.section = section;
    this.engine = engine;
    this.canvas = h("canvas", { tabIndex: 0, role: "img", className: "field" });
    this.lines = h("dd");
    this.number = h("dd");
    this.enemy = h("select", { id: "enemy", oninput: () => this.start() },
      ...Object.entries(ENEMIES).map(([value, text]) => h("option", { value }, text)));
    /** Cells of the placement that a panel highlights, or null. */
    this.marked = null;
    this.reasons = new ReasonPanel();
    this.opinions = new OpinionPanel(this);
    this.beam = new BeamPanel(this);
    this.replay = new ReplayPanel(this);
    this.draw = oncePerFrame(() => this.paint());
    this.onKey = (event) => this.key(event);
    this.build();
    this.start();
  }

  build() {
    const button = (text, label, work) => h("button", {
      type: "button", className: "pad", "aria-label": label, title: label, onclick: (event) => {
        work();
        this.focusField(event);
      },
    }, text);
    const key = (text, label, letter) => button(text, label, () => this.press(letter));
    this.section.append(
      h("h1", { className: "unseen" }, "HATETRIS"),
      h("div", { className: "game" },
        h("div", { className: "stage" },
          h("dl", { className: "score" },
            h("div", {}, h("dt", {}, "Lines"), this.lines),
            h("div", {}, h("dt", {}, "Piece"), this.number)),
          h("div", { className: "screen" }, this.canvas),
          h("div", { className: "pads", role: "group", "aria-label": "Keys" },
            key("←", "Left", "L"), key("↻", "Turn", "U"), key("→", "Right", "R"), key("↓", "Down", "D"), key("⤓", "Drop", "H"),
            button("⟲", "Undo", () => this.undo())),
          h("p", { className: "hint keyboard" }, h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " ", h("kbd", {}, "↓"), " move, ",
            h("kbd", {}, "↑"), " turns, ", h("kbd", {}, "Space"), " drops, ", h("kbd", {}, "Z"), " undoes"),
          h("div", { className: "row" },
            h("label", { for: "enemy" }, "Enemy"), this.enemy,
            h("button", {
              type: "button", onclick: (event) => {
                this.start();
                this.focusField(event);
              },
            }, "New game"))),
        h("div", { className: "panels" }, this.reasons.element, this.opinions.element),
        h("div", { className: "panels" }, this.beam.element, this.replay.element)));
    addTouch(this.canvas, WIDTH, (letters) => this.press(letters));
  }

  /** Focuses the well after a click with a pointer, so that the space bar drops the piece instead of pressing a button. */
  focusField(event) {
    if (event.detail > 0) this.canvas.focus({ preventScroll: true });
  }

  /** Sends a request to the engine and returns its answer. If the request fails, shows the reason and returns null. */
  call(request) {
    try {
      return this.engine.call(request);
    } catch (error) {
      toast(error.message, "bad");
      return null;
    }
  }

  start() {
    this.replay.pause();
    const state = this.call({ call: "start", enemy: this.enemy.value });
    if (state !== null) this.beam.forget();
    this.show(state);
  }

  press(keys) {
    this.replay.pause();
    this.show(this.call({ call: "press", keys }), true);
  }

  undo() {
    this.replay.pause();
    this.show(this.call({ call: "undo" }), true);
  }

  seek(to) {
    this.show(this.call({ call: "seek", to }));
  }

  place(well) {
    this.replay.pause();
    this.show(this.call({ call: "place", well }), true);
  }

  /** Shows a state of the game. If `byPlayer` is true, announces a new piece or the end of the game to screen readers. */
  show(state, byPlayer = false) {
    if (state === null) return;
    const before = this.state;
    this.state = state;
    this.marked = null;
    this.enemy.value = state.enemy;
    this.reasons.show(state);
    this.opinions.show(state);
    this.beam.show(state);
    this.replay.show(state);
    this.draw();
    if (byPlayer && (before?.number !== state.number || state.over)) this.announce(before);
  }

  announce(before) {
    const { state } = this;
    const lines = state.score - (before?.score ?? 0);
    const cleared = lines > 0 ? `${count(lines, "line")} cleared. ` : "";
    announce(state.over ? `Game over with ${count(state.score, "line")}` : `${cleared}Piece ${state.number}: ${state.piece}. ${this.reasons.sentence}`);
  }

  /** Highlights the cells of a placement, or none if `cells` is null. */
  mark(cells) {
    this.marked = cells;
    this.draw();
  }

  paint() {
    const { state } = this;
    setText(this.lines, String(state.score));
    setText(this.number, state.over ? `${state.number}, game over` : `${state.number}, ${state.piece}`);
    draw(this.canvas, {
      cells: cellsOf(state.rows, WIDTH), width: WIDTH, above: ABOVE, falling: state.cells, ghost: this.marked ?? state.ghost,
      piece: valueOf(state.piece),
    });
    this.canvas.setAttribute("aria-label", this.describe());
  }

  describe() {
    const { state } = this;
    const columns = state.cells.map(([x]) => x + 1);
    const place = columns.length ? `, in columns ${Math.min(...columns)} to ${Math.max(...columns)}` : "";
    return `Well, stack ${count(stackHeight(state.rows), "row")} high. ${state.over ? "Game over" : `Piece ${state.piece}${place}`}`;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isIn = (selector) => event.target.closest?.(selector);
    if (isIn("input, select, textarea, [role=listbox]")) return;
    // The space bar activates a focused button or link.
    if (event.key === " " && isIn("button, a, summary")) return;
    const letter = KEYS[event.key];
    if (letter) this.press(letter);
    else if (event.key === "z" || event.key === "Backspace") this.undo();
    else return;
    event.preventDefault();
  }

  enter() {
    addEventListener("keydown", this.onKey);
    addEventListener("resize", this.draw);
    addEventListener("theme", this.draw);
    this.draw();
  }

  leave() {
    this.replay.pause();
    removeEventListener("keydown", this.onKey);
    removeEventListener("resize", this.draw);
    removeEventListener("theme", this.draw);
  }
}
