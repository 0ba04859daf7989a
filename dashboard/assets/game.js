// The page that plays a game.

import { h, show } from "./dom.js";
import { count } from "./format.js";
import { call, runPath } from "./live.js";
import { Player } from "./player.js";

export function gamePage(main, name, depth) {
  const abort = new AbortController();
  let player = null;
  const run = h("a", { href: `#/run/${encodeURIComponent(name)}` }, name);
  const loading = h("p", { className: "hint", role: "status" }, "Reading the game back …");
  const problem = h("div", { hidden: true });
  const summary = h("p", { className: "hint" });
  main.replaceChildren(
    h("p", { className: "crumbs" }, h("a", { href: "#/" }, "Runs"), " / ", run, " /"),
    h("h1", {}, depth === 0 ? "Best game" : `Game to depth ${depth}`), loading, problem, summary);

  const load = async () => {
    show(problem, false);
    show(loading, true);
    try {
      const film = await call(`${runPath(name)}/game?depth=${depth}`, undefined, { signal: abort.signal });
      player = new Player(film, depth === 0 ? `${name}-${film.score}-lines` : `${name}-depth-${depth}`);
      summary.textContent = `${count(film.score, "line")} in ${count(film.pieces, "piece")} against ${film.enemy.toUpperCase()}, ` +
        `${count(film.keys, "key")}${film.over ? "" : "; the game is not over"}.`;
      main.append(player.element);
      player.draw();
      player.announceState();
      show(loading, false);
    } catch (error) {
      if (error.name === "AbortError") return;
      show(loading, false);
      problem.replaceChildren(
        h("p", { className: "problem", role: "alert" }, `The game cannot be shown: ${error.message}`),
        h("p", { className: "hint" }, error.status === 501
          ? "The best game is available when the run has ended. Until then, the run's page shows the best well at each depth."
          : "The run may not keep the wells that lead to this game (see “Keep wells of” in the form for a new run), or the object store may be unavailable."),
        h("button", { type: "button", onclick: load }, "Try again"));
      show(problem, true);
    }
  };
  load();
  return () => {
    abort.abort();
    player?.close();
  };
}
