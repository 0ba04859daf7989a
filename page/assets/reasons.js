// The panel that shows why the enemy, which chooses the pieces, gives a piece.

import { h, setChildren, setText } from "./dom.js";
import { count } from "./figures.js";

/** Number of rows below the bar of the well. It is the maximum of each height meter. */
const HEIGHT = 16;

export class ReasonPanel {
  constructor() {
    this.text = h("p", { className: "note" });
    this.rows = h("tbody");
    this.sentence = "";
    this.element = h("section", { className: "panel" },
      h("h2", {}, "The enemy’s reason"),
      this.text,
      h("table", { className: "reasons" },
        h("thead", {}, h("tr", {},
          h("th", { scope: "col" }, "Piece"),
          h("th", { scope: "col" }, "Lowest stack that you can leave"),
          h("th", { scope: "col", className: "num", title: "How often the most frequent well that the piece can leave has occurred" }, "Loops"))),
        this.rows));
  }

  show(state) {
    if (state.over) {
      this.sentence = "The game is over.";
      setText(this.text, this.sentence);
      setChildren(this.rows);
      return;
    }
    this.sentence = explain(state);
    setText(this.text, this.sentence);
    setChildren(this.rows, state.reasons.map((reason) => row(reason, reason.piece === state.piece)));
  }
}

function row({ piece, height, loops }, isGiven) {
  return h("tr", { className: isGiven ? "given" : "" },
    h("th", { scope: "row" }, h("span", { className: `letter piece-${piece.toLowerCase()}` }, piece), isGiven && h("span", { className: "unseen" }, " given")),
    h("td", {}, h("span", { className: "height" },
      h("progress", { max: HEIGHT, value: Math.min(height, HEIGHT), "aria-hidden": "true" }), height > HEIGHT ? `${height}: over the bar` : String(height))),
    h("td", { className: "num" }, String(loops)));
}

/** Explains why the enemy gives the piece. */
function explain({ enemy, piece, reasons }) {
  if (enemy === "lovetris") return "LOVETRIS always gives I.";
  if (enemy === "burgiel") return "Burgiel gives S and Z alternately, regardless of the well.";
  if (enemy === "brzustowski") return "Brzustowski gives the same piece until a well repeats, then changes from S to Z or back.";
  const given = reasons.find((reason) => reason.piece === piece);
  const highest = Math.max(...reasons.map(({ height }) => height));
  const worst = reasons.filter(({ height }) => height === highest);
  const rows = count(given.height, "row");
  if (given.height < highest || worst[0].piece !== piece) {
    return `${worst[0].piece} would be worse for you, but it can leave a well that has occurred before. ${piece} loops least: ${count(given.loops, "time")}.`;
  }
  if (worst.length === 1) return `With ${piece}, you cannot leave a stack lower than ${rows}. Every other piece can leave a lower one.`;
  if (worst.length === reasons.length) return `All pieces are equally bad: you cannot leave a stack lower than ${rows}. ${piece} comes first in the order S Z O I L J T.`;
  const others = worst.slice(1).map((reason) => reason.piece).join(", ");
  return `With ${piece}, you cannot leave a stack lower than ${rows}. ${others} ${worst.length === 2 ? "is" : "are"} as bad, but ${piece} comes first in the order S Z O I L J T.`;
}
