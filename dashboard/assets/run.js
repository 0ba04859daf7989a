// The page of one run, live.

import { Chart, RIGHT } from "./charts.js";
import { Depths } from "./depths.js";
import { ask } from "./dialog.js";
import { download, fill, h, oncePerFrame, put, say, show } from "./dom.js";
import { Fields, limitFields, readLimits } from "./fields.js";
import { bytes, clock, count, dollars, duration, endedBy, number, percent, range, rough, short } from "./format.js";
import { icon, iconButton } from "./icons.js";
import { Live, call, runPath } from "./live.js";
import { stateChip } from "./runs.js";
import { cellsOf, describe, draw, rowsOf } from "./well.js";
import { WorkerTable, empty as noWorkers } from "./workers.js";

/** From here on a budget is nearly used up. */
const WARN = 0.8;

export function runPage(main, name) {
  const page = new RunPage(main, name);
  return () => page.close();
}

class RunPage {
  constructor(main, name) {
    this.name = name;
    this.run = null;
    this.told = [];
    this.depths = new Depths();
    this.build(main);
    this.plot = later(() => this.plotting());
    this.live = new Live(() => `${runPath(name)}/events?from=${this.depths.next}`, {
      run: (run) => this.setRun(run),
      depths: (records) => this.addDepths(records),
      workers: (workers) => this.setWorkers(workers),
      alerts: (alerts) => this.setAlerts(alerts),
    }, {
      check: runPath(name),
      refused: (error) => main.replaceChildren(h("h1", {}, name),
        h("p", { className: "problem", role: "alert" }, error.message),
        h("p", {}, h("a", { href: "#/" }, "To the runs"))),
    });
  }

  build(main) {
    const { name } = this;
    this.chip = h("span");
    this.stop = h("button", { type: "button", className: "danger", hidden: true, onclick: () => this.askStop() }, "Stop");
    this.limits = h("button", { type: "button", hidden: true, onclick: () => this.askLimits() }, "Limits …");
    this.goOn = h("button", { type: "button", hidden: true, onclick: () => this.askGoOn() }, "Go on");
    this.play = h("a", { className: "button main", href: `#/run/${encodeURIComponent(name)}/game`, hidden: true }, icon("play"), "Best game");
    this.note = h("p", { className: "banner", hidden: true });
    this.alerts = h("ul", { className: "alerts", "aria-label": "Alerts", "aria-live": "polite", hidden: true });
    this.figures = new Figures();
    this.budget = h("div", { className: "budgets", hidden: true });
    this.wells = new WellBrowser(this.depths, name);
    this.charts = charts((depth) => this.wells.pick(depth));
    this.table = new DepthTable(this.depths);
    this.workers = new WorkerTable();
    this.noWorkers = h("div", { hidden: true }, noWorkers());
    this.costs = h("section", { hidden: true });
    this.spec = h("pre", { className: "command", tabIndex: 0 });
    const loading = h("p", { className: "hint", role: "status" }, "Waiting for the coordinator …");
    this.loading = loading;
    // There is nothing to draw before the first depth.
    this.drawn = h("div", { className: "columns", hidden: true },
      this.wells.element,
      h("section", { className: "plots", "aria-label": "Plots over depth" },
        ...Object.values(this.charts).map((chart) => chart.element)));
    main.replaceChildren(
      h("p", { className: "crumbs" }, h("a", { href: "#/" }, "Runs"), " / "),
      h("div", { className: "head" }, h("h1", {}, name, " ", this.chip),
        h("div", { className: "buttons" }, this.play, this.limits, this.goOn, this.stop)),
      loading, this.note, this.alerts, this.figures.element, this.budget,
      this.drawn,
      this.table.element,
      h("section", {}, h("h2", {}, "Workers"), this.noWorkers, this.workers.element),
      this.costs,
      h("section", {},
        h("h2", {}, "Downloads"),
        h("div", { className: "buttons" },
          h("button", { type: "button", onclick: () => download(`${name}-depths.csv`, "text/csv", this.depths.csv()) }, "Depths as CSV"),
          h("button", { type: "button", onclick: () => download(`${name}.json`, "application/json", JSON.stringify(this.run, null, 2)) }, "Run as JSON"),
          h("a", { className: "button", href: `#/run/${encodeURIComponent(name)}/game` }, "Replay …"))),
      h("details", {}, h("summary", {}, "Specification"), this.spec));
  }

  setRun(run) {
    if (!run) return;
    const was = this.run?.state;
    this.run = run;
    show(this.loading, false);
    if (was !== run.state) {
      this.chip.replaceChildren(stateChip(run.state));
      if (was !== undefined) say(`The run is ${run.state}`);
      put(this.spec, JSON.stringify(run.spec, null, 2));
    }
    const isOpen = run.state === "running" || run.state === "queued";
    show(this.stop, isOpen);
    show(this.limits, isOpen);
    show(this.goOn, run.state === "cancelled" || run.state === "failed" || Boolean(run.stopped_by));
    show(this.play, run.depth > 0);
    const ended = run.stopped_by ? `It was ${endedBy(run.stopped_by)}. ` : "";
    put(this.note, ended + run.note);
    show(this.note, this.note.textContent !== "");
    this.setAlerts(this.told);
    this.figures.set(run, this.depths);
    this.setBudgets(run);
    this.setCosts(run.cost, run.state === "running");
    document.title = `${count(run.points, "line")}, depth ${run.depth} – ${run.run}`;
    say(`Depth ${run.depth}, best ${count(run.points, "line")}, ${dollars(run.dollars)}`, { seldom: true });
  }

  setBudgets(run) {
    const budgets = [
      ["Cost", run.dollars ?? 0, run.max_dollars, dollars],
      ["Time", run.seconds, run.max_hours === null ? null : run.max_hours * 3600, duration],
      ["Depth", run.depth, run.max_depth || null, number],
    ].filter(([, , most]) => most !== null);
    show(this.budget, budgets.length > 0);
    const key = budgets.map(([label]) => label).join();
    if (this.budgetKey !== key) {
      this.budgetKey = key;
      this.bars = budgets.map(([label]) => {
        const bar = h("progress", { max: 1, value: 0, "aria-label": `${label} used of the limit` });
        const text = h("span");
        return { bar, text, element: h("div", { className: "budget" }, h("b", {}, label), bar, text) };
      });
      this.budget.replaceChildren(...this.bars.map((bar) => bar.element));
    }
    budgets.forEach(([label, used, most, format], at) => {
      const part = most > 0 ? used / most : 0;
      const { bar, text, element } = this.bars[at];
      bar.value = Math.min(1, part);
      element.classList.toggle("warn", part >= WARN && label !== "Depth");
      put(text, `${format(used)} of ${format(most)}, ${percent(part)}`);
    });
  }

  setCosts(cost, isRunning) {
    const key = JSON.stringify([cost, isRunning]);
    if (key === this.costKey) return;
    this.costKey = key;
    show(this.costs, cost !== null);
    if (cost === null) return;
    const row = (name, what, time, price, sum) => h("tr", {},
      h("th", { scope: "row" }, name), h("td", {}, what), h("td", { className: "num" }, time),
      h("td", { className: "num" }, price), h("td", { className: "num" }, sum));
    const machines = cost.machines.map((one) => {
      const machine = one.machine;
      const what = [machine?.kind, machine?.market, machine?.region].filter(Boolean).join(", ") || "–";
      const price = machine?.dollars_per_hour ?? null;
      return row(one.name + (isRunning && !one.attends ? " (gone)" : ""), what, duration(one.seconds),
        price === null ? "unknown" : `${dollars(price)}/h`, price === null ? "unknown" : dollars(one.dollars));
    });
    fill(this.costs,
      h("h2", {}, "Cost"),
      h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Cost by machine" },
        h("table", {},
          h("thead", {}, h("tr", {}, ...["Machine", "Kind", "Paid for", "Price", "Cost"]
            .map((text, at) => h("th", { scope: "col", className: at > 1 ? "num" : "" }, text)))),
          h("tbody", {}, ...machines,
            row("Requests to the object store", "", "", "", dollars(cost.request_dollars)),
            row("Storage so far", "", "", `${dollars(cost.storage_dollars_per_month)}/month`, dollars(cost.storage_dollars)),
            row("All told", "", "", "", dollars(cost.dollars))))),
      cost.unpriced > 0 && h("p", { className: "hint" },
        `${count(cost.unpriced, "worker has", "workers have")} no known price: the run costs more than is said here.`));
  }

  addDepths(records) {
    this.depths.add(records, this.run);
    show(this.drawn, this.depths.next > 0);
    this.plot();
  }

  /** A piece of work for each plot, so that none of them holds up the page for long. */
  plotting() {
    const { depths, charts: all } = this;
    return [
      () => {
        this.wells.update();
        this.table.update();
        if (this.run) this.figures.set(this.run, depths);
      },
      () => all.score.set(depths.depth, depths.best, depths.median, depths.cut),
      () => all.points.set(depths.depth, depths.points),
      () => all.height.set(depths.depth, depths.surface, depths.stack),
      () => all.time.set(depths.depth, depths.seconds),
      () => all.cost.set(depths.depth, depths.dollars, depths.spent),
      () => all.bytes.set(depths.depth, depths.bytes),
    ];
  }

  setWorkers(workers) {
    this.workers.set(workers);
    show(this.workers.element, workers.length > 0);
    show(this.noWorkers, workers.length === 0);
  }

  setAlerts(told) {
    this.told = told;
    // What holds the run up is said above.
    const alerts = told.filter((alert) => alert.text !== this.run?.note);
    const key = JSON.stringify(alerts);
    if (key === this.alertsKey) return;
    this.alertsKey = key;
    show(this.alerts, alerts.length > 0);
    this.alerts.replaceChildren(...alerts.map((alert) => h("li", { className: `alert ${alert.kind}` },
      h("b", {}, alert.kind.replaceAll("-", " ")), alert.worker ? ` ${alert.worker}: ` : ": ", alert.text)));
  }

  askStop() {
    return ask({
      title: "Stop this run?",
      text: "It ends with the depth that is under way. All that is committed stays in the object store, and it can go on later. Machines are not stopped by this: they cost until you stop them.",
      yes: "Stop the run",
      danger: true,
      work: async () => {
        await call(`${runPath(this.name)}/cancel`, {});
        return "The run stops at the end of its depth";
      },
    });
  }

  askLimits() {
    return this.askWithLimits({
      title: "Where shall this run stop?",
      text: "The depth that is under way is finished in any case.",
      yes: "Change",
      work: async (limits) => {
        await call(`${runPath(this.name)}/limits`, limits);
        return "The limits are changed";
      },
    });
  }

  async askGoOn() {
    const { run } = this;
    const why = run.stopped_by ? ` It was ${endedBy(run.stopped_by)}: give more of that, or leave the field empty.` : "";
    const done = await this.askWithLimits({
      title: "Go on with this run?",
      text: `It goes on after depth ${run.depth}.${why}`,
      yes: "Go on",
      work: async (limits) => {
        const now = await call("runs", { spec: run.spec, shards: run.shards, ...limits });
        if (now.state === "finished") throw new Error(`It was ${endedBy(now.stopped_by)}, and goes on with more of that only.`);
        return "The run is in the queue again";
      },
    });
    // The stream of events ended with the run.
    if (done) dispatchEvent(new Event("reload"));
  }

  askWithLimits({ title, text, yes, work }) {
    const fields = new Fields();
    return ask({
      title,
      text: [text, ...limitFields(fields, this.run)],
      yes,
      work: () => {
        fields.faults = [];
        const limits = readLimits(fields);
        if (fields.faults.length === 0) return work(limits);
        fields.focusFault();
        throw new Error("One of the limits cannot be read.");
      },
    });
  }

  close() {
    this.live.close();
    this.plot.cancel();
    this.wells.close();
    for (const chart of Object.values(this.charts)) chart.close();
  }
}

/**
 * Has work done soon, a piece of it in each frame, and then not for a while: plots of ten thousand depths take
 * their time, and on a slow machine more of it.
 */
function later(pieces) {
  const PAUSE = 500;
  /** The part of the time that may go into it is one in so many. */
  const PART = 6;
  let timer = null;
  let isWanted = false;
  let isClosed = false;
  const work = async () => {
    isWanted = false;
    let spent = 0;
    for (const piece of pieces()) {
      const begun = performance.now();
      piece();
      spent += performance.now() - begun;
      await new Promise((resolve) => requestAnimationFrame(resolve));
      if (isClosed) return;
    }
    timer = setTimeout(() => {
      timer = null;
      if (isWanted) start();
    }, Math.max(PAUSE, spent * PART));
  };
  const start = () => {
    isWanted = true;
    if (timer === null) timer = setTimeout(work, 0);
  };
  start.cancel = () => {
    isClosed = true;
    clearTimeout(timer);
  };
  return start;
}

function charts(onPick) {
  const line = (label, ink, more = {}) => ({ label, ink, ...more });
  return {
    score: new Chart({ title: "Score", format: short, onPick, lines: [line("best", "c1"), line("median", "c2"), line("cut", "c3", { dash: [4, 3] })] }),
    points: new Chart({ title: "Lines of the best game", format: short, onPick, lines: [line("lines", "c1")] }),
    height: new Chart({ title: "Height of the best well", format: short, onPick, lines: [line("surface", "c1"), line("stack", "c2")] }),
    time: new Chart({ title: "Seconds a depth", format: (value) => duration(value), onPick, lines: [line("time", "c4")] }),
    cost: new Chart({ title: "Dollars", format: dollars, onPick, lines: [line("a depth", "c3", { dash: [4, 3] }), line("so far, right", "c5", { scale: RIGHT })] }),
    bytes: new Chart({ title: "Bytes stored a depth", format: bytes, onPick, lines: [line("bytes", "c2")] }),
  };
}

/** The key figures. */
class Figures {
  constructor() {
    this.values = {};
    this.hints = {};
    const card = (key, label) => {
      this.values[key] = h("dd", {}, "–");
      this.hints[key] = h("dd", { className: "hint" });
      return h("div", { className: `card ${key}` }, h("dt", {}, label), this.values[key], this.hints[key]);
    };
    this.progress = h("progress", { max: 1, value: 0, "aria-label": "Of the depth under way", hidden: true });
    this.element = h("dl", { className: "figures", "aria-label": "Key figures" },
      card("depth", "Depth"), card("points", "Best game"), card("speed", "Children a second"), card("time", "Searched for"),
      card("cost", "Cost so far"), card("rate", "Cost an hour"), card("end", "Projected end"), card("total", "Projected cost"));
    this.element.querySelector(".depth").append(h("dd", {}, this.progress));
  }

  put(key, value, hint = "") {
    put(this.values[key], value);
    put(this.hints[key], hint);
    show(this.hints[key], hint !== "");
  }

  set(run, depths) {
    const isRunning = run.state === "running";
    const under = isRunning && run.parents > 0 ? run.expanded / run.parents : null;
    this.put("depth", number(run.depth), under === null ? `${short(run.width)} wells wide` : `${percent(under)} of the next, ${short(run.width)} wide`);
    show(this.progress, under !== null);
    if (under !== null) this.progress.value = Math.min(1, under);
    this.put("points", count(run.points, "line"), run.pieces ? `${number(run.pieces)} pieces, read back` : "of the best well so far");
    const speed = depths.speed();
    this.put("speed", short(speed), depths.recent() > 0 ? `over the last ${count(depths.recent(), "depth")}` : "");
    this.put("time", duration(run.seconds), `since ${clock(run.submitted_ms)} submitted`);
    const { cost } = run;
    const perWell = cost && depths.wells > 0 ? cost.dollars / depths.wells * 1e6 : null;
    this.put("cost", dollars(run.dollars), perWell === null ? "" : `${dollars(perWell)} a million wells`);
    const unpriced = cost?.unpriced ? `without ${count(cost.unpriced, "worker")} of unknown price` : "";
    this.put("rate", cost && isRunning ? dollars(cost.dollars_per_hour) : "–", isRunning ? unpriced : "");
    const end = run.projection;
    if (end && isRunning) {
      this.put("end", `in ${range(end.seconds, rough)}`, `depth ${range(end.depths, number)}, at ${range(end.seconds, (left) => clock(Date.now() + left * 1000))}`);
      this.put("total", range(end.dollars, dollars), end.judged_by);
    } else {
      this.put("end", "–", isRunning ? "cannot be judged yet" : "");
      this.put("total", "–", `${bytes(run.stored_bytes)} stored`);
    }
  }
}

/** The best well of each depth. */
class WellBrowser {
  constructor(depths, name) {
    this.depths = depths;
    this.name = name;
    /** The place that is shown; `null` follows the last one. */
    this.at = null;
    this.canvas = h("canvas", { role: "img", "aria-label": "No well yet", "data-most": 280 });
    this.scrub = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Depth whose best well is shown", oninput: () => this.choose(Number(this.scrub.value)) });
    this.title = h("p", { className: "well-title" });
    this.facts = h("p", { className: "hint" });
    this.link = h("a", { className: "button" }, icon("play"), "Game to this depth");
    this.element = h("section", { className: "wells", "aria-label": "Best well of each depth" },
      h("h2", {}, "Best well"), this.title, h("div", { className: "screen" }, this.canvas), this.scrub,
      h("div", { className: "transport" },
        iconButton("First depth", "first", () => this.choose(0)),
        iconButton("Depth before", "before", () => this.choose(this.index() - 1)),
        iconButton("Next depth", "next", () => this.choose(this.index() + 1)),
        iconButton("Follow the last depth", "last", () => this.choose(Infinity))),
      this.facts, this.link);
    this.element.hidden = true;
    this.paint = oncePerFrame(() => this.draw());
    addEventListener("resize", this.paint);
    addEventListener("theme", this.paint);
  }

  index() {
    const last = this.depths.length - 1;
    return this.at === null ? last : Math.min(this.at, last);
  }

  choose(at) {
    const last = this.depths.length - 1;
    this.at = at >= last ? null : Math.max(0, at);
    this.paint();
  }

  pick(depth) {
    const at = this.depths.indexOf(depth);
    if (at >= 0) this.choose(at);
  }

  update() {
    show(this.element, this.depths.length > 0);
    this.paint();
  }

  draw() {
    const { depths } = this;
    if (depths.length === 0) return;
    const at = this.index();
    const rows = rowsOf(depths.well[at], depths.width);
    put(this.title, `Depth ${number(depths.depth[at])}, ${count(depths.points[at], "line")}${this.at === null ? ", the last" : ""}`);
    if (Number(this.scrub.max) !== depths.length - 1) this.scrub.max = depths.length - 1;
    this.scrub.value = at;
    this.scrub.setAttribute("aria-valuetext", `depth ${depths.depth[at]}`);
    this.link.href = `#/run/${encodeURIComponent(this.name)}/game/${depths.depth[at]}`;
    if (rows === null) {
      put(this.facts, "The well cannot be read.");
      return;
    }
    draw(this.canvas, { cells: cellsOf(rows, depths.width), width: depths.width });
    const text = describe(rows, depths.width);
    this.canvas.setAttribute("aria-label", text);
    put(this.facts, `surface ${number(depths.surface[at])}, stack ${number(depths.stack[at])}; ${count(depths.count[at], "well")} kept`);
  }

  close() {
    removeEventListener("resize", this.paint);
    removeEventListener("theme", this.paint);
  }
}

/** All values of the plots as a table, a page at a time. */
class DepthTable {
  constructor(depths) {
    this.depths = depths;
    this.page = null;
    this.body = h("tbody");
    this.where = h("span");
    const names = ["Depth", "Wells", "Lines", "Best", "Median", "Cut", "Surface", "Stack", "Children", "Time", "Cost", "Bytes", "Kept"];
    const button = (text, work) => h("button", { type: "button", className: "small", onclick: work }, text);
    this.element = h("details", { className: "depths", ontoggle: () => this.update(true) },
      h("summary", {}, "Table of depths"),
      h("div", { className: "transport" },
        button("Last", () => this.go(null)), button("Later", () => this.go(this.current() + 1)),
        button("Earlier", () => this.go(this.current() - 1)), this.where),
      h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Depths" },
        h("table", {}, h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col", className: "num" }, name)))), this.body)));
  }

  pages() {
    return Math.max(1, Math.ceil(this.depths.length / DepthTable.ROWS));
  }

  current() {
    return Math.min(this.page ?? Infinity, this.pages() - 1);
  }

  go(page) {
    this.page = page === null || page >= this.pages() - 1 ? null : Math.max(0, page);
    this.update(true);
  }

  update(force = false) {
    // A page that is full does not change any more.
    if (!this.element.open || !force && this.page !== null) return;
    const { depths } = this;
    const from = this.current() * DepthTable.ROWS;
    const to = Math.min(depths.length, from + DepthTable.ROWS);
    const rows = [];
    for (let at = to - 1; at >= from; at -= 1) {
      const values = [number(depths.count[at]), number(depths.points[at]), number(depths.best[at]), number(depths.median[at]),
        number(depths.cut[at]), number(depths.surface[at]), number(depths.stack[at]), short(depths.children[at]),
        duration(depths.seconds[at]), dollars(depths.dollars[at]), bytes(depths.bytes[at]), depths.kept[at] ? "yes" : "no"];
      rows.push(h("tr", {}, h("th", { scope: "row", className: "num" }, number(depths.depth[at])),
        ...values.map((value) => h("td", { className: "num" }, value))));
    }
    this.body.replaceChildren(...rows);
    put(this.where, depths.length === 0 ? "no depth yet" : `depths ${number(depths.depth[from])} to ${number(depths.depth[to - 1])}`);
  }
}
DepthTable.ROWS = 100;
