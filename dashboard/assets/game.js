// The page of a run's game.

import { h, show } from "./dom.js";
import { count } from "./format.js";
import { call, runPath } from "./live.js";
import { Player } from "./player.js";

export function gamePage(main, name, depth) {
  const stop = new AbortController();
  let player = null;
  const run = h("a", { href: `#/run/${encodeURIComponent(name)}` }, name);
  const waiting = h("p", { className: "hint", role: "status" }, "Reading the game back …");
  const problem = h("div", { hidden: true });
  const summary = h("p", { className: "hint" });
  main.replaceChildren(
    h("p", { className: "crumbs" }, h("a", { href: "#/" }, "Runs"), " / ", run, " /"),
    h("h1", {}, depth === 0 ? "Best game" : `Game to depth ${depth}`), waiting, problem, summary);

  const load = async () => {
    show(problem, false);
    show(waiting, true);
    try {
      const film = await call(`${runPath(name)}/game?depth=${depth}`, undefined, { signal: stop.signal });
      player = new Player(film, depth === 0 ? `${name}-${film.score}-lines` : `${name}-depth-${depth}`);
      summary.textContent = `${count(film.score, "line")} in ${count(film.pieces, "piece")} against ${film.enemy.toUpperCase()}, ` +
        `${count(film.keys, "key")}${film.over ? "" : "; the game is not over"}.`;
      main.append(player.element);
      player.draw();
      player.tell();
      show(waiting, false);
    } catch (error) {
      if (error.name === "AbortError") return;
      show(waiting, false);
      problem.replaceChildren(
        h("p", { className: "problem", role: "alert" }, `The game cannot be shown: ${error.message}`),
        h("p", { className: "hint" }, error.status === 501
          ? "The best game is here when the run has ended. Until then its best wells are on the page of the run."
          : "The wells on the way to it may not be kept (the run's “keep”), or the object store is away."),
        h("button", { type: "button", onclick: load }, "Try again"));
      show(problem, true);
    }
  };
  load();
  return () => {
    stop.abort();
    player?.close();
  };
}
