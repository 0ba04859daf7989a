// Panel that plays many games with each selected agent in a web worker, and shows statistics of the results.

import { h, setChildren, setText, toast } from "./dom.js";
import { count, number } from "./figures.js";
import { Remote, Stopped } from "./remote.js";

export class ManyPanel {
  constructor(tab) {
    this.tab = tab;
    this.remote = new Remote();
    this.isRunning = false;
    this.games = h("input", { type: "number", id: "games", min: 2, max: 10_000, value: 30 });
    this.most = h("input", { type: "number", id: "most", min: 1, max: 1e9, value: 1000 });
    this.mostEntry = h("span", { className: "row" }, h("label", { for: "most" }, "Maximum pieces"), this.most);
    this.button = h("button", { type: "button", onclick: () => this.toggle() }, "Play the games");
    this.rows = h("tbody");
    this.table = h("div", { className: "scroll", hidden: true }, h("table", {},
      h("thead", {}, h("tr", {},
        h("th", { scope: "col" }, "Player"),
        ["Games", "Mean", "± 95 %", "Median", "Maximum"].map((name) => h("th", { scope: "col", className: "num" }, name)))),
      this.rows));
    this.status = h("p", { className: "note", role: "status" });
    this.element = h("section", { className: "panel many" },
      h("h2", {}, "Many games"),
      h("div", { className: "bar" },
        h("span", { className: "row" }, h("label", { for: "games" }, "Games"), this.games), this.mostEntry, this.button),
      this.status, this.table);
  }

  toggle() {
    if (this.isRunning) this.remote.stop();
    else this.run();
  }

  async run() {
    const wanted = Math.max(2, Math.min(10_000, Number(this.games.value) || 0));
    const start = { ...this.tab.start, call: "many", most_pieces: Math.max(1, Math.trunc(Number(this.most.value)) || 1) };
    this.isRunning = true;
    setText(this.button, "Stop");
    try {
      await this.remote.call(start);
      for (let played = 1; played <= wanted; played += 1) {
        this.show(await this.remote.call({ call: "many-play", games: 1 }), played, wanted);
      }
    } catch (error) {
      if (!(error instanceof Stopped)) toast(error.message, "bad");
    }
    this.isRunning = false;
    setText(this.button, "Play the games");
  }

  show({ players, compared = [] }, played, wanted) {
    this.table.hidden = false;
    const figure = (value) => h("td", { className: "num" }, value === null ? "–" : number(Math.round(value * 100) / 100));
    setChildren(this.rows, players.map((player, index) => h("tr", {},
      h("th", { scope: "row" }, `${index + 1}: ${player.name}`),
      figure(player.games), figure(player.mean), figure(player.half_width), figure(player.median), figure(player.max))));
    const [pair] = compared;
    const difference = pair === undefined ? "" : ` Player 2 is better in ${count(pair.better, "game")} and worse in ${pair.worse}. ` +
      `The mean difference is ${pair.mean_difference.toFixed(2)} ± ${pair.half_width?.toFixed(2) ?? "–"} on the same pieces.`;
    setText(this.status, `${played} of ${count(wanted, "game")}.${difference}`);
  }
}
