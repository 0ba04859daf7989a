// The tab for perfect clears. The user edits the field, the queue and the hold slot. The tab shows the chance of a
// perfect clear after each first move.

import { announce, copy, h, setChildren, setText, show, toast } from "./dom.js";
import { columns, count } from "./figures.js";
import { FieldEditor } from "./field.js";
import { Remote, Stopped } from "./remote.js";

const PIECES = "IJLOSTZ";
const KICKS = {
  srs: "SRS", srsplus: "SRS+ (TETR.IO)", "srs+180j": "SRS, half turns (Jstris)", "srs+180t": "SRS, half turns (TETR.IO)", nokick: "no kicks",
};
/** Delay between a change of the position and the computation, in milliseconds. */
const PAUSE = 200;

/** Returns the piece letters in a text, in upper case. */
function parse(text) {
  return text.toUpperCase().replaceAll(/[^IJLOSTZ]/g, "");
}

export class ClearsTab {
  constructor(section, engine) {
    this.section = section;
    this.engine = engine;
    this.remote = new Remote();
    /** A second worker, which finds the best move while the first one computes the chances of all moves. */
    this.quick = new Remote();
    this.found = "";
    /** Earlier positions, for the button “Take back”. */
    this.history = [];
    this.pieces = 0;
    this.editor = new FieldEditor(() => this.change());
    this.buildInputs();
    this.status = h("span", { role: "status" });
    /** Seconds of the computation. They are outside the status, which screen readers read whenever it changes. */
    this.clock = h("span", { "aria-hidden": "true" });
    this.problem = h("p", { className: "problem", role: "alert", hidden: true });
    this.list = h("ol", { className: "moves", "aria-label": "First moves, best first" });
    this.solution = h("div", { className: "solution", hidden: true });
    this.build();
    this.reset();
  }

  buildInputs() {
    const change = () => this.change();
    const text = (id, label) => h("input", { type: "text", id, autocomplete: "off", spellcheck: false, className: "letters", "aria-label": label, oninput: change });
    const choice = (id, options) => h("select", { id, oninput: change },
      ...Object.entries(options).map(([value, name]) => h("option", { value }, name)));
    this.hold = choice("hold", { "": "empty", ...Object.fromEntries([...PIECES].map((piece) => [piece, piece])) });
    this.queue = text("queue", "Queue");
    this.bag = text("bag", "Left in the bag");
    this.bag.placeholder = "automatic";
    this.lines = h("select", { id: "lines", oninput: () => this.resize() }, ...[4, 3, 2, 1].map((lines) => h("option", { value: lines }, String(lines))));
    this.kicks = choice("kicks", KICKS);
    this.drop = choice("drop", { soft: "soft and hard drop", hard: "hard drop only" });
    this.auto = h("input", { type: "checkbox", id: "auto", checked: true, oninput: change });
    this.compute = h("button", { type: "button", className: "main", onclick: () => this.toggle() }, "Compute chances");
  }

  build() {
    const field = (id, label, input, hint) => h("div", { className: `entry${hint ? " wide-entry" : ""}` }, h("label", { for: id }, label), input, hint && h("span", { className: "hint" }, hint));
    const button = (text, work) => h("button", { type: "button", onclick: work }, text);
    this.section.append(
      h("h1", { className: "unseen" }, "Perfect clears"),
      h("div", { className: "clears" },
        h("div", { className: "panels" },
          h("section", { className: "panel" },
            h("h2", {}, "Field"),
            this.editor.element,
            h("div", { className: "buttons" },
              button("Empty field", () => this.reset()), button("Take back", () => this.takeBack()), button("Deal a piece", () => this.deal()))),
          h("section", { className: "panel entries" },
            field("hold", "Hold", this.hold), field("queue", "Current piece and previews", this.queue, "letters, such as IJLOSTZ"),
            field("bag", "Left in the bag after them", this.bag, "if the queue does not start with a bag"),
            field("lines", "Rows to clear", this.lines), field("kicks", "Kicks", this.kicks), field("drop", "Drops", this.drop))),
        h("div", { className: "panels" },
          h("section", { className: "panel" },
            h("h2", {}, "First moves"),
            h("div", { className: "buttons" }, this.compute, button("Solve the known queue", () => this.solve()),
              h("label", { className: "check", for: "auto" }, this.auto, " compute after every change")),
            h("p", { className: "note" }, this.status, " ", this.clock), this.problem, this.list, this.solution))));
  }

  get position() {
    return {
      rows: this.editor.rows, lines: Number(this.lines.value), kicks: this.kicks.value, drop: this.drop.value,
    };
  }

  /** The held piece, if any, followed by the queue. */
  get seen() {
    return this.hold.value + parse(this.queue.value);
  }

  reset() {
    this.history = [];
    this.pieces = 0;
    this.resetLines(4);
    this.editor.set(new Array(4).fill("_".repeat(10)));
    this.hold.value = "";
    if (this.queue.value === "") this.queue.value = "IJLOSTZ";
    this.change();
  }

  /** Sets the number of rows to clear, and that of the next empty field. */
  resetLines(lines) {
    this.lines.value = String(lines);
    // Whole pieces cannot fill one or three rows.
    this.chosen = lines % 2 === 0 ? lines : 4;
  }

  resize() {
    const lines = Number(this.lines.value);
    this.resetLines(lines);
    const { rows } = this.editor;
    const empty = new Array(Math.max(0, lines - rows.length)).fill("_".repeat(10));
    this.editor.set([...empty, ...rows].slice(-lines));
    this.change();
  }

  change() {
    clearTimeout(this.timer);
    this.editor.mark(null);
    this.clear();
    if (this.remote.isBusy) this.remote.stop();
    if (this.auto.checked) this.timer = setTimeout(() => this.run(), PAUSE);
  }

  /** Removes the answers for the previous position. */
  clear() {
    setChildren(this.list);
    show(this.solution, false);
    show(this.problem, false);
    setText(this.status, "");
  }

  toggle() {
    clearTimeout(this.timer);
    if (this.remote.isBusy) this.remote.stop();
    else this.run();
  }

  async ask(request, waiting) {
    this.clear();
    const started = performance.now();
    const tick = () => {
      setText(this.status, `${this.found}${waiting} …`);
      setText(this.clock, `${((performance.now() - started) / 1000).toFixed(1)} s`);
    };
    const timer = setInterval(tick, 100);
    setText(this.compute, "Stop");
    try {
      const value = await this.remote.call(request);
      return { value, seconds: (performance.now() - started) / 1000 };
    } catch (error) {
      setText(this.status, error instanceof Stopped ? "Stopped." : "");
      if (!(error instanceof Stopped)) {
        this.problem.textContent = error.message;
        show(this.problem, true);
      }
      return null;
    } finally {
      clearInterval(timer);
      setText(this.clock, "");
      if (!this.remote.isBusy) setText(this.compute, "Compute chances");
    }
  }

  /**
   * Computes the chances of all moves. Meanwhile, the second worker looks for the best move. Its first answers arrive
   * much earlier, and later ones improve them.
   */
  async run() {
    const bag = parse(this.bag.value);
    const request = { ...this.position, seen: this.seen, ...(bag ? { left_in_bag: bag } : {}) };
    this.found = "";
    this.quick.call({ ...request, call: "pc-best" }, (best) => this.showBest(best)).then((best) => this.showBest(best)).catch(() => {});
    const answer = await this.ask({ ...request, call: "pc-chance" }, "Computing");
    if (this.quick.isBusy) this.quick.stop();
    if (answer === null) return;
    const { moves, best_adaptive: adaptive } = answer.value;
    const text = `${count(moves.length, "first move")} in ${answer.seconds.toFixed(2)} s. The best has a chance of ${percent(adaptive)}.`;
    setText(this.status, text);
    announce(text);
    setChildren(this.list, moves.map((move) => this.item(move)));
    if (moves.length > 0) this.editor.mark(moves[0]);
  }

  /** Shows the best move that has been found so far. Its chance is a lower bound. */
  showBest(best) {
    if (best.piece === undefined || !this.remote.isBusy) return;
    this.found = `The best move so far is ${best.piece} with a chance of at least ${percent(best.best_adaptive)}. `;
    this.editor.mark(best);
  }

  item(move) {
    const rows = move.cells.map((cell) => Math.floor(cell / 10) + 1);
    const place = `${columns(move.cells.map((cell) => cell % 10 + 1))}, row ${Math.min(...rows)}`;
    const mark = () => this.editor.mark(move);
    return h("li", {}, h("button", {
      type: "button", className: "move", onclick: () => this.play(move), onpointerenter: mark, onfocus: mark,
    },
    h("span", { className: `letter piece-${move.piece.toLowerCase()}` }, move.piece),
    h("span", { className: "place" }, place),
    h("span", { className: "value", title: `adaptive ${move.adaptive}` }, percent(move.adaptive)),
    h("span", { className: "behind", title: `clairvoyant ${move.clairvoyant}` }, h("span", { className: "unseen" }, "clairvoyant "), percent(move.clairvoyant))));
  }

  /** Places one of the first two pieces, updates the hold slot and the queue, and deals a piece. */
  play({ piece, cells }) {
    let after;
    try {
      after = this.engine.call({ call: "pc-put", ...this.position, piece, cells });
    } catch (error) {
      toast(error.message, "bad");
      return;
    }
    this.history.push({
      ...this.position, chosen: this.chosen, hold: this.hold.value, queue: this.queue.value, bag: this.bag.value, pieces: this.pieces,
    });
    const seen = this.seen;
    const bag = parse(this.bag.value) || leftAfter(seen);
    const rest = seen[0] === piece ? seen.slice(1) : seen[0] + seen.slice(2);
    // The piece that was not placed goes to the hold slot, unless the slot was empty and the current piece was placed.
    const isHeld = this.hold.value !== "" && rest !== "" && !(seen[0] === piece && seen[1] === undefined);
    const holds = seen[0] !== piece || isHeld;
    this.hold.value = holds ? rest[0] ?? "" : "";
    this.queue.value = holds ? rest.slice(1) : rest;
    this.bag.value = bag;
    this.pieces += 1;
    const isClear = after.lines === 0;
    this.lines.value = String(isClear ? this.chosen : after.lines);
    this.editor.set(isClear ? new Array(this.chosen).fill("_".repeat(10)) : after.rows);
    const text = isClear ? `Perfect clear after ${count(this.pieces, "piece")}` : `${piece} placed`;
    if (isClear) {
      this.pieces = 0;
      toast(text);
    }
    announce(text);
    this.deal();
  }

  takeBack() {
    const before = this.history.pop();
    if (before === undefined) return;
    this.lines.value = String(before.lines);
    this.chosen = before.chosen;
    this.editor.set(before.rows);
    this.hold.value = before.hold;
    this.queue.value = before.queue;
    this.bag.value = before.bag;
    this.pieces = before.pieces;
    this.change();
  }

  /** Appends a random piece from the bag to the queue. */
  deal() {
    const left = parse(this.bag.value) || leftAfter(this.seen);
    const piece = left[Math.floor(Math.random() * left.length)];
    this.queue.value = parse(this.queue.value) + piece;
    this.bag.value = left.replace(piece, "") || PIECES;
    this.change();
  }

  async solve() {
    clearTimeout(this.timer);
    if (this.remote.isBusy) this.remote.stop();
    this.found = "";
    const request = { call: "pc-solve", ...this.position, queue: this.seen, hold: true, held: this.hold.value !== "" };
    const answer = await this.ask(request, "Solving");
    if (answer === null) return;
    const { value, seconds } = answer;
    setText(this.status, `${value === null ? "This queue has no perfect clear" : "Perfect clear found"} (${(seconds * 1000).toFixed(0)} ms).`);
    announce(this.status.textContent);
    if (value === null) return;
    this.editor.picture(value.picture);
    setChildren(this.solution,
      h("ol", { className: "keys-list" }, value.moves.map((move) => h("li", {},
        h("span", { className: `letter piece-${move.piece.toLowerCase()}` }, move.piece), " ",
        [...(move.hold ? ["hold"] : []), ...move.keys].join(" "),
        move.lines > 0 && h("b", {}, ` ${count(move.lines, "row")}`)))),
      h("div", { className: "buttons" },
        h("button", { type: "button", onclick: () => copy(value.fumen, "Fumen") }, "Copy the Fumen code")));
    show(this.solution, true);
  }

  enter() {}

  leave() {
    clearTimeout(this.timer);
  }
}

/** Returns the pieces left in the bag after the pieces `seen`, assuming that `seen` begins with a new bag. */
function leftAfter(seen) {
  const drawn = seen.slice(seen.length - seen.length % 7);
  return [...PIECES].filter((piece) => !drawn.includes(piece)).join("");
}

/** Formats a fraction such as `103/105` as a percentage. */
function percent(fraction) {
  const [count, all = 1] = fraction.split("/").map(Number);
  const value = 100 * count / all;
  return `${value === 0 || value === 100 ? value : value.toFixed(2)} %`;
}
