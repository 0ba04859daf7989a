// The page with the list of runs.

import { h, setText, show } from "./dom.js";
import { bytes, clock, count, dollars, duration, number, short, stoppedBy } from "./format.js";
import { Live } from "./live.js";
import { noWorkers } from "./workers.js";

export function stateChip(state) {
  return h("span", { className: `chip ${state}` }, state);
}

/** Returns an element that shows a shell command. */
function command(text) {
  return h("pre", { className: "command", tabIndex: 0 }, text);
}

function emptyState() {
  return h("section", { className: "empty" },
    h("h2", {}, "No runs yet"),
    h("p", {}, "A run searches for the best game of HATETRIS, piece by piece. Start one here or in a terminal:"),
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
  const workerHelp = h("div", { hidden: true }, noWorkers());
  const summary = h("p", { className: "hint" });
  main.replaceChildren(
    h("div", { className: "head" }, h("h1", {}, "Runs"), h("a", { className: "button main", href: "#/submit" }, "New run")),
    summary, workerHelp, empty, table);

  let workers = null;
  let runs = null;
  const updateSummary = () => {
    if (runs === null || workers === null) return;
    const threads = workers.reduce((sum, worker) => sum + worker.threads, 0);
    const open = runs.filter((run) => run.state === "running" || run.state === "queued").length;
    setText(summary, `${count(runs.length, "run")}, ${open} open; ${count(workers.length, "worker")} with ${count(threads, "thread")}`);
    show(summary, runs.length + workers.length > 0);
    show(workerHelp, workers.length === 0);
  };

  const live = new Live(() => "events", {
    runs: (all) => {
      runs = all;
      show(empty, all.length === 0);
      show(table, all.length > 0);
      update(body, rows, all);
      updateSummary();
    },
    workers: (all) => {
      workers = all;
      updateSummary();
    },
  });
  return () => live.close();
}

/** Updates the table's rows in place, so that the focused element keeps the focus. */
function update(body, rows, runs) {
  const names = new Set(runs.map((run) => run.run));
  for (const [name, row] of rows) {
    if (names.has(name)) continue;
    row.element.remove();
    rows.delete(name);
  }
  runs.forEach((run, index) => {
    let row = rows.get(run.run);
    if (!row) {
      row = makeRow(run.run);
      rows.set(run.run, row);
    }
    row.fill(run);
    if (body.children[index] !== row.element) body.insertBefore(row.element, body.children[index] ?? null);
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
    setText(note, run.note || stoppedBy(run.stopped_by));
    setText(width, short(run.width));
    setText(depth, run.max_depth ? `${number(run.depth)} of ${number(run.max_depth)}` : number(run.depth));
    setText(best, count(run.best_lines, "line"));
    setText(time, duration(run.seconds));
    setText(cost, run.max_dollars ? `${dollars(run.dollars)} of ${dollars(run.max_dollars)}` : dollars(run.dollars));
    setText(stored, bytes(run.stored_bytes));
    setText(submitted, clock(run.submitted_ms));
  };
  return { element, fill };
}
