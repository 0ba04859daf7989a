// The page of all runs.

import { h, put, show } from "./dom.js";
import { bytes, clock, count, dollars, duration, endedBy, number, short } from "./format.js";
import { Live } from "./live.js";
import { empty as noWorkers } from "./workers.js";

export function stateChip(state) {
  return h("span", { className: `chip ${state}` }, state);
}

/** What to type. */
export function command(text) {
  return h("pre", { className: "command", tabIndex: 0 }, text);
}

function emptyState() {
  return h("section", { className: "empty" },
    h("h2", {}, "No run yet"),
    h("p", {}, "A run searches for the best game of HATETRIS, one piece after the other. Start one here, or in a terminal:"),
    command("hatebeam submit --width 100k --watch"),
    h("p", {}, h("a", { className: "button main", href: "#/submit" }, "New run")));
}

export function runsPage(main) {
  const rows = new Map();
  const body = h("tbody");
  const table = h("div", { className: "scroll", hidden: true, tabIndex: 0, role: "region", "aria-label": "Runs" },
    h("table", { className: "runs" },
      h("thead", {}, h("tr", {}, ...["Run", "State", "Width", "Depth", "Best", "Time", "Cost", "Stored", "Submitted"]
        .map((name) => h("th", { scope: "col", className: ["Run", "State"].includes(name) ? "" : "num" }, name)))),
      body));
  const empty = h("div", { hidden: true }, emptyState());
  const helpers = h("div", { hidden: true }, noWorkers());
  const summary = h("p", { className: "hint" });
  main.replaceChildren(
    h("div", { className: "head" }, h("h1", {}, "Runs"), h("a", { className: "button main", href: "#/submit" }, "New run")),
    summary, helpers, empty, table);

  let workers = null;
  let runs = null;
  const summarise = () => {
    if (runs === null || workers === null) return;
    const threads = workers.reduce((sum, worker) => sum + worker.threads, 0);
    const open = runs.filter((run) => run.state === "running" || run.state === "queued").length;
    put(summary, `${count(runs.length, "run")}, ${open} open; ${count(workers.length, "worker")} with ${count(threads, "thread")}`);
    show(summary, runs.length + workers.length > 0);
    show(helpers, workers.length === 0);
  };

  const live = new Live(() => "events", {
    runs: (all) => {
      runs = all;
      show(empty, all.length === 0);
      show(table, all.length > 0);
      update(body, rows, all);
      summarise();
    },
    workers: (all) => {
      workers = all;
      summarise();
    },
  });
  return () => live.close();
}

/** Changes what has changed, so that what has the focus keeps it. */
function update(body, rows, runs) {
  const names = new Set(runs.map((run) => run.run));
  for (const [name, row] of rows) {
    if (names.has(name)) continue;
    row.element.remove();
    rows.delete(name);
  }
  runs.forEach((run, at) => {
    let row = rows.get(run.run);
    if (!row) {
      row = makeRow(run.run);
      rows.set(run.run, row);
    }
    row.fill(run);
    if (body.children[at] !== row.element) body.insertBefore(row.element, body.children[at] ?? null);
  });
}

function makeRow(name) {
  const cell = () => h("td", { className: "num" });
  const [state, width, depth, best, time, cost, stored, submitted] = [h("td"), cell(), cell(), cell(), cell(), cell(), cell(), cell()];
  const note = h("div", { className: "note" });
  const link = h("a", { href: `#/run/${encodeURIComponent(name)}` }, name);
  const element = h("tr", {}, h("th", { scope: "row" }, link, note), state, width, depth, best, time, cost, stored, submitted);
  let shown = "";
  const fill = (run) => {
    if (shown !== run.state) {
      shown = run.state;
      state.replaceChildren(stateChip(run.state));
    }
    put(note, run.note || endedBy(run.stopped_by));
    put(width, short(run.width));
    put(depth, run.max_depth ? `${number(run.depth)} of ${number(run.max_depth)}` : number(run.depth));
    put(best, count(run.points, "line"));
    put(time, duration(run.seconds));
    put(cost, run.max_dollars ? `${dollars(run.dollars)} of ${dollars(run.max_dollars)}` : dollars(run.dollars));
    put(stored, bytes(run.stored_bytes));
    put(submitted, clock(run.submitted_ms));
  };
  return { element, fill };
}
