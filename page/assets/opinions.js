// The panel that shows an evaluator's score for each placement of the piece. A click on a placement plays it.

import { h, setChildren, setText, toast } from "./dom.js";
import { columns, count, number } from "./figures.js";

/** Labels of the evaluators, by name. */
export const EVALUATORS = {
  patterns: "patterns",
  network: "network (1.5 MB)",
  knewjade: "knewjade",
  plain: "plain",
};

/** Creates a select element with the evaluators. */
export function evaluatorChoice(id, onChange) {
  return h("select", { id, oninput: onChange },
    ...Object.entries(EVALUATORS).map(([value, text]) => h("option", { value }, text)));
}

export class OpinionPanel {
  constructor(tab) {
    this.tab = tab;
    this.choice = evaluatorChoice("opinion", () => this.choose());
    this.list = h("ol", { className: "moves", "aria-label": "Placements, best first" });
    this.note = h("p", { className: "note" });
    /** Identifies the piece, the well and the evaluator whose scores are shown. */
    this.shown = null;
    this.element = h("details", { className: "panel", open: true, ontoggle: () => this.show(this.tab.state) },
      h("summary", {}, "Placements and their scores"),
      h("div", { className: "row" }, h("label", { for: "opinion" }, "Evaluator"), this.choice),
      this.note, this.list);
  }

  async choose() {
    if (this.choice.value === "network") {
      setText(this.note, "Loading the network …");
      try {
        await this.tab.engine.loadNetwork();
      } catch (error) {
        toast(error.message, "bad");
        this.choice.value = "patterns";
      }
    }
    this.shown = null;
    this.show(this.tab.state);
  }

  show(state) {
    if (!this.element.open || state === undefined) return;
    const key = `${state.piece} ${state.piece_at} ${state.well} ${state.over} ${this.choice.value}`;
    if (this.shown === key) return;
    this.shown = key;
    const scores = this.tab.call({ call: "scores", evaluator: this.choice.value });
    if (scores === null) return;
    const best = scores[0]?.score ?? 0;
    setText(this.note, state.over ? "The game is over." : `${count(scores.length, "placement")} of ${state.piece}. Greater is better.`);
    setChildren(this.list, scores.map((placement) => this.item(placement, best)));
  }

  item(placement, best) {
    const { cells, well, lines, score } = placement;
    const place = `${columns(cells.map(([x]) => x + 1))}, row ${20 - Math.max(...cells.map(([, y]) => y))}`;
    const value = score === null ? "ends the game" : number(score);
    const behind = score === null || score === best ? "" : number(score - best);
    const mark = () => this.tab.mark(cells);
    const unmark = () => this.tab.mark(null);
    return h("li", {}, h("button", {
      type: "button", className: "move", onclick: (event) => {
        this.tab.place(well);
        this.tab.focusField(event);
        // `place` has replaced the buttons. After a click from the keyboard (`detail` is 0), focus the first new
        // button.
        if (event.detail === 0) this.list.querySelector("button")?.focus();
      },
      onpointerenter: mark, onpointerleave: unmark, onfocus: mark, onblur: unmark,
    },
    h("span", { className: "place" }, place, lines > 0 && h("b", {}, ` ${count(lines, "line")}`)),
    h("span", { className: "value" }, value),
    h("span", { className: "behind" }, behind)));
  }
}
