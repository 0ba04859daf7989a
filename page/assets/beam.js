// The panel of the beam search, which runs in a worker and continues the game from the current piece.

import { announce, h, setText, show, toast } from "./dom.js";
import { count, number, short } from "./figures.js";
import { evaluatorChoice } from "./opinions.js";
import { Remote, Stopped } from "./remote.js";
import { cellsOf, draw } from "./well.js";

const WIDTHS = [10, 100, 1000, 5000, 20_000];
/** Target duration of a request to the worker, in milliseconds. */
const SLICE = 120;

export class BeamPanel {
  constructor(tab) {
    this.tab = tab;
    this.remote = new Remote();
    this.isRunning = false;
    /** Whether the running search ends after the pending answer. */
    this.isStopped = false;
    /** State of the game in which the search started; null if another game has begun since. */
    this.from = null;
    this.width = h("select", { id: "beam-width" },
      ...WIDTHS.map((width) => h("option", { value: width, selected: width === 1000 }, number(width))));
    this.evaluator = evaluatorChoice("beam-evaluator");
    this.button = h("button", { type: "button", className: "main", onclick: () => this.toggle() }, "Search from here");
    this.take = h("button", { type: "button", disabled: true, onclick: () => this.follow() }, "Play the best game");
    this.status = h("p", { className: "note", role: "status" }, "Finds a long game from the current well. You can play during the search.");
    this.canvas = h("canvas", { role: "img", "aria-label": "Best well of the beam" });
    this.canvas.dataset.most = 150;
    this.facts = h("dl", { className: "facts wide" });
    this.result = h("div", { className: "beam", hidden: true }, h("div", { className: "screen" }, this.canvas), this.facts);
    this.element = h("section", { className: "panel" },
      h("h2", {}, "Beam search"),
      h("div", { className: "bar" },
        h("span", { className: "row" }, h("label", { for: "beam-width" }, "Width"), this.width),
        h("span", { className: "row" }, h("label", { for: "beam-evaluator" }, "Evaluator"), this.evaluator)),
      h("div", { className: "buttons" }, this.button, this.take),
      this.status, this.result);
    addEventListener("theme", () => this.paint());
  }

  show(state) {
    this.button.disabled = state.over && !this.isRunning;
  }

  /** Forgets where the search started. Called when another game begins, which the best game must not replace. */
  forget() {
    this.from = null;
    this.take.disabled = true;
  }

  toggle() {
    if (this.isRunning) this.isStopped = true;
    else this.run();
  }

  async run() {
    const { state } = this.tab;
    this.isRunning = true;
    this.isStopped = false;
    this.from = state;
    this.take.disabled = true;
    setText(this.button, "Stop");
    setText(this.status, "Starting …");
    try {
      this.progress = await this.remote.call({
        call: "beam-start", well: state.well, lines: state.score, width: Number(this.width.value), evaluator: this.evaluator.value,
      });
      await this.advance();
    } catch (error) {
      if (!(error instanceof Stopped)) {
        setText(this.status, error.message);
        toast(error.message, "bad");
      }
    }
    this.isRunning = false;
    setText(this.button, "Search from here");
    this.show(this.tab.state);
  }

  /** Continues the search until it ends or is stopped. */
  async advance() {
    const started = performance.now();
    let depths = 1;
    while (!this.isStopped && this.progress.end === null) {
      const before = performance.now();
      this.progress = await this.remote.call({ call: "beam-run", depths });
      const spent = performance.now() - before;
      depths = Math.max(1, Math.min(200, Math.round(depths * SLICE / Math.max(spent, 1)), depths * 2));
      this.take.disabled = this.from === null;
      this.paint((performance.now() - started) / 1000);
    }
    const { end, depth, lines } = this.progress;
    const text = `${end === null ? "Stopped" : `Ended: ${end}`}. Best game: ${count(lines, "line")} after ${count(depth, "piece")}.`;
    setText(this.status, text);
    announce(text);
  }

  paint(seconds = this.seconds) {
    const { progress } = this;
    if (!progress || !seconds) return;
    this.seconds = seconds;
    show(this.result, true);
    const { best } = progress;
    draw(this.canvas, { cells: cellsOf(best.rows, 10), width: 10 });
    const facts = {
      "Pieces from here": number(progress.depth),
      "Total lines": number(progress.lines),
      "Best score": number(best.score),
      "Wells kept": number(progress.wells),
      "Children per second": short(progress.children / seconds),
    };
    this.facts.replaceChildren(...Object.entries(facts).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
    if (this.isRunning && !this.isStopped) setText(this.status, "Searching …");
  }

  /** Replaces the rest of the replay with the beam's best game, and plays this game. */
  async follow() {
    this.isStopped = true;
    try {
      const wells = await this.remote.call({ call: "beam-path" });
      if (this.from === null) return;
      this.tab.replay.pause();
      const before = this.tab.state;
      if (before.well !== this.from.well) this.tab.seek(this.from.piece_at);
      const followed = this.tab.call({ call: "follow", wells });
      if (followed === null) {
        // The keys have changed since the search started, and lead to another well.
        if (this.tab.state.at !== before.at) this.tab.seek(before.at);
        return;
      }
      this.tab.show(followed.state);
      const fault = followed.fault === null ? "" : ` Then ${followed.fault}.`;
      toast(`${count(followed.pieces, "piece")} to play.${fault}`, followed.fault === null ? "fine" : "bad");
      this.tab.replay.play();
    } catch (error) {
      if (!(error instanceof Stopped)) toast(error.message, "bad");
    }
  }
}
