// The page of one run. An event stream updates the page.

import { Chart, RIGHT } from "./charts.js";
import { Depths } from "./depths.js";
import { confirmAction } from "./dialog.js";
import { announce, download, h, oncePerFrame, setChildren, setText, show } from "./dom.js";
import { Fields, limitFields, readLimits } from "./fields.js";
import { bytes, clock, count, dollars, duration, number, percent, range, rough, short, stoppedBy } from "./format.js";
import { icon, iconButton } from "./icons.js";
import { Live, call, runPath } from "./live.js";
import { stateChip } from "./runs.js";
import { cellsOf, describe, draw, rowsOf } from "./well.js";
import { WorkerTable, noWorkers } from "./workers.js";

/** A limit is highlighted if at least this fraction of it is used. */
const WARN = 0.8;

export function runPage(main, name) {
  const page = new RunPage(main, name);
  return () => page.close();
}

class RunPage {
  constructor(main, name) {
    this.name = name;
    this.run = null;
    this.allAlerts = [];
    this.depths = new Depths();
    /** Whether all depth records have been requested again and none of them has arrived. */
    this.isOutdated = false;
    this.build(main);
    this.schedulePlots = inPieces(() => this.plotWork());
    // Each stream begins with the last known record, to find out whether it is still valid.
    this.live = new Live(() => `${runPath(name)}/events?from=${this.isOutdated ? 0 : this.depths.last}`, {
      run: (run) => this.setRun(run),
      depths: (records) => this.addDepths(records),
      workers: (workers) => this.setWorkers(workers),
      alerts: (alerts) => this.setAlerts(alerts),
    }, {
      check: runPath(name),
      notFound: (error) => main.replaceChildren(h("h1", {}, name),
        h("p", { className: "problem", role: "alert" }, error.message),
        h("p", {}, h("a", { href: "#/" }, "All runs"))),
    });
  }

  build(main) {
    const { name } = this;
    this.chip = h("span");
    this.stop = h("button", { type: "button", className: "danger", hidden: true, onclick: () => this.confirmStop() }, "Stop");
    this.limits = h("button", { type: "button", hidden: true, onclick: () => this.editLimits() }, "Limits …");
    this.resume = h("button", { type: "button", hidden: true, onclick: () => this.confirmResume() }, "Resume");
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
    // This element is hidden until the first depth is committed.
    this.drawn = h("div", { className: "columns", hidden: true },
      this.wells.element,
      h("section", { className: "plots", "aria-label": "Plots over depth" },
        ...Object.values(this.charts).map((chart) => chart.element)));
    main.replaceChildren(
      h("p", { className: "crumbs" }, h("a", { href: "#/" }, "Runs"), " / "),
      h("div", { className: "head" }, h("h1", {}, name, " ", this.chip),
        h("div", { className: "buttons" }, this.play, this.limits, this.resume, this.stop)),
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
    if (run.depth < this.depths.last) this.reload();
    const was = this.run?.state;
    this.run = run;
    show(this.loading, false);
    if (was !== run.state) {
      this.chip.replaceChildren(stateChip(run.state));
      if (was !== undefined) announce(`The run is ${run.state}`);
      setText(this.spec, JSON.stringify(run.spec, null, 2));
    }
    const isOpen = run.state === "running" || run.state === "queued";
    show(this.stop, isOpen);
    show(this.limits, isOpen);
    show(this.resume, run.state === "cancelled" || run.state === "failed" || Boolean(run.stopped_by));
    show(this.play, run.depth > 0);
    const ended = run.stopped_by ? `The run was ${stoppedBy(run.stopped_by)}. ` : "";
    setText(this.note, ended + run.note);
    show(this.note, this.note.textContent !== "");
    this.setAlerts(this.allAlerts);
    this.figures.update(run, this.depths);
    this.setLimits(run);
    this.setCosts(run.cost, run.state === "running");
    document.title = `${count(run.best_lines, "line")}, depth ${run.depth} – ${run.run}`;
    announce(`Depth ${run.depth}, best ${count(run.best_lines, "line")}, ${dollars(run.dollars)}`, { seldom: true });
  }

  setLimits(run) {
    const limits = [
      ["Cost", run.dollars ?? 0, run.max_dollars, dollars],
      ["Time", run.used_seconds, run.max_hours === null ? null : run.max_hours * 3600, duration],
      ["Depth", run.depth, run.max_depth || null, number],
    ].filter(([, , limit]) => limit !== null);
    show(this.budget, limits.length > 0);
    const key = limits.map(([label]) => label).join();
    if (this.budgetKey !== key) {
      this.budgetKey = key;
      this.bars = limits.map(([label]) => {
        const bar = h("progress", { max: 1, value: 0, "aria-label": `${label}: used share of the limit` });
        const text = h("span");
        return { bar, text, element: h("div", { className: "budget" }, h("b", {}, label), bar, text) };
      });
      this.budget.replaceChildren(...this.bars.map((bar) => bar.element));
    }
    limits.forEach(([label, used, limit, format], index) => {
      const part = limit > 0 ? used / limit : 0;
      const { bar, text, element } = this.bars[index];
      bar.value = Math.min(1, part);
      element.classList.toggle("warn", part >= WARN && label !== "Depth");
      setText(text, `${format(used)} of ${format(limit)}, ${percent(part)}`);
    });
  }

  setCosts(cost, isRunning) {
    const key = JSON.stringify([cost, isRunning]);
    if (key === this.costKey) return;
    this.costKey = key;
    show(this.costs, cost !== null);
    if (cost === null) return;
    const row = (name, type, time, price, sum) => h("tr", {},
      h("th", { scope: "row" }, name), h("td", {}, type), h("td", { className: "num" }, time),
      h("td", { className: "num" }, price), h("td", { className: "num" }, sum));
    const machines = cost.machines.map((used) => {
      const machine = used.machine;
      const type = [machine?.kind, machine?.market, machine?.region].filter(Boolean).join(", ") || "–";
      const price = machine?.dollars_per_hour ?? null;
      return row(used.name + (isRunning && !used.active ? " (disconnected)" : ""), type, duration(used.seconds),
        price === null ? "unknown" : `${dollars(price)}/h`, price === null ? "unknown" : dollars(used.dollars));
    });
    setChildren(this.costs,
      h("h2", {}, "Cost"),
      h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Cost by machine" },
        h("table", {},
          h("thead", {}, h("tr", {}, ...["Machine", "Type", "Time", "Price", "Cost"]
            .map((text, index) => h("th", { scope: "col", className: index > 1 ? "num" : "" }, text)))),
          h("tbody", {}, ...machines,
            row("Object store requests", "", "", "", dollars(cost.request_dollars)),
            row("Storage", "", "", `${dollars(cost.storage_dollars_per_month)}/month`, dollars(cost.storage_dollars)),
            row("Total", "", "", "", dollars(cost.dollars))))),
      cost.unpriced > 0 && h("p", { className: "hint" },
        `The price of ${count(cost.unpriced, "worker")} is unknown, so the actual cost is higher.`));
  }

  /** Requests all depth records again. The first ones that arrive replace all known ones. */
  reload() {
    if (this.isOutdated) return;
    this.isOutdated = true;
    this.live.open();
  }

  addDepths(records) {
    // If a depth was searched again, earlier depths may have been searched again while the page was not connected.
    if (!this.isOutdated && this.depths.isReplacedBy(records[0])) {
      this.reload();
      return;
    }
    this.isOutdated = false;
    this.depths.add(records, this.run);
    show(this.drawn, this.depths.next > 0);
    this.schedulePlots();
  }

  /** Returns the steps of an update. Each plot is updated in its own step, so that no step blocks the page for long. */
  plotWork() {
    const { depths, charts: all } = this;
    return [
      () => {
        this.wells.update();
        this.table.update();
        if (this.run) this.figures.update(this.run, depths);
      },
      () => all.score.set(depths.depth, depths.best_eval, depths.median_eval, depths.worst_eval),
      () => all.lines.set(depths.depth, depths.best_lines),
      () => all.height.set(depths.depth, depths.surface, depths.stack),
      () => all.time.set(depths.depth, depths.seconds),
      () => all.cost.set(depths.depth, depths.dollars, depths.total_dollars),
      () => all.bytes.set(depths.depth, depths.bytes),
    ];
  }

  setWorkers(workers) {
    this.workers.set(workers);
    show(this.workers.element, workers.length > 0);
    show(this.noWorkers, workers.length === 0);
  }

  setAlerts(allAlerts) {
    this.allAlerts = allAlerts;
    // Omit alerts with the text of the run's note, which the page already shows.
    const alerts = allAlerts.filter((alert) => alert.text !== this.run?.note);
    const key = JSON.stringify(alerts);
    if (key === this.alertsKey) return;
    this.alertsKey = key;
    show(this.alerts, alerts.length > 0);
    this.alerts.replaceChildren(...alerts.map((alert) => h("li", { className: `alert ${alert.kind}` },
      h("b", {}, alert.kind.replaceAll("-", " ")), alert.worker ? ` ${alert.worker}: ` : ": ", alert.text)));
  }

  confirmStop() {
    return confirmAction({
      title: `Stop run ${this.name}?`,
      text: "The run stops at once and drops the depth in progress. Its committed depths stay in the object store, and you can resume it later. The machines keep running and cost money until you stop them.",
      label: "Stop the run",
      danger: true,
      work: async () => {
        await call(`${runPath(this.name)}/cancel`, {});
        return "The run stops";
      },
    });
  }

  editLimits() {
    return this.confirmWithLimits({
      title: `Change the limits of run ${this.name}?`,
      text: "The new limits apply after the current depth.",
      label: "Change",
      work: async (limits) => {
        await call(`${runPath(this.name)}/limits`, limits);
        return "Limits changed";
      },
    });
  }

  async confirmResume() {
    const { run } = this;
    const advice = run.stopped_by ? ` It was ${stoppedBy(run.stopped_by)}: raise that limit, or leave the field empty.` : "";
    const isDone = await this.confirmWithLimits({
      title: `Resume run ${this.name}?`,
      text: `The run continues after depth ${run.depth}.${advice}`,
      label: "Resume",
      work: async (limits) => {
        const now = await call("runs", { spec: run.spec, shards: run.shards, ...limits });
        if (now.state === "finished") throw new Error(`The run was ${stoppedBy(now.stopped_by)}: raise that limit to resume it.`);
        return "The run is queued again";
      },
    });
    // The event stream ended with the run. Reload the page to open a new stream.
    if (isDone) dispatchEvent(new Event("reload"));
  }

  confirmWithLimits({ title, text, label, work }) {
    const fields = new Fields();
    return confirmAction({
      title,
      text: [text, ...limitFields(fields, this.run)],
      label,
      work: () => {
        fields.invalid = [];
        const limits = readLimits(fields);
        if (fields.invalid.length === 0) return work(limits);
        fields.focusInvalid();
        throw new Error("A limit is invalid.");
      },
    });
  }

  close() {
    this.live.close();
    this.schedulePlots.cancel();
    this.wells.close();
    for (const chart of Object.values(this.charts)) chart.close();
  }
}

/**
 * Returns a function that requests an update. An update calls the functions in the list that `pieces` returns, one per
 * frame, and then pauses. Drawing ten thousand depths takes noticeable time, so the pause grows with the time spent.
 */
function inPieces(pieces) {
  /** Minimum pause, in milliseconds. */
  const PAUSE = 500;
  /** Ratio of the pause to the time spent in the functions. */
  const RATIO = 6;
  let timer = null;
  let isRequested = false;
  let isClosed = false;
  const work = async () => {
    isRequested = false;
    let spent = 0;
    for (const piece of pieces()) {
      const started = performance.now();
      piece();
      spent += performance.now() - started;
      await new Promise((resolve) => requestAnimationFrame(resolve));
      if (isClosed) return;
    }
    timer = setTimeout(() => {
      timer = null;
      if (isRequested) start();
    }, Math.max(PAUSE, spent * RATIO));
  };
  const start = () => {
    isRequested = true;
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
    score: new Chart({ title: "Evaluator score", format: short, onPick, lines: [line("best", "c1"), line("median", "c2"), line("cut", "c3", { dash: [4, 3] })] }),
    lines: new Chart({ title: "Lines of the best game", format: short, onPick, lines: [line("lines", "c1")] }),
    height: new Chart({ title: "Height of the best well", format: short, onPick, lines: [line("surface", "c1"), line("stack", "c2")] }),
    time: new Chart({ title: "Time per depth", format: (value) => duration(value), onPick, lines: [line("time", "c4")] }),
    cost: new Chart({ title: "Cost", format: dollars, onPick, lines: [line("per depth", "c3", { dash: [4, 3] }), line("total (right axis)", "c5", { scale: RIGHT })] }),
    bytes: new Chart({ title: "Bytes stored per depth", format: bytes, onPick, lines: [line("bytes", "c2")] }),
  };
}

/** The key figures of a run, as cards. */
class Figures {
  constructor() {
    this.values = {};
    this.hints = {};
    const card = (key, label) => {
      this.values[key] = h("dd", {}, "–");
      this.hints[key] = h("dd", { className: "hint" });
      return h("div", { className: `card ${key}` }, h("dt", {}, label), this.values[key], this.hints[key]);
    };
    this.progress = h("progress", { max: 1, value: 0, "aria-label": "Progress of the next depth", hidden: true });
    this.element = h("dl", { className: "figures", "aria-label": "Key figures" },
      card("depth", "Depth"), card("lines", "Best game"), card("speed", "Children per second"), card("time", "Search time"),
      card("cost", "Cost so far"), card("rate", "Cost per hour"), card("end", "Projected end"), card("total", "Projected cost"));
    this.element.querySelector(".depth").append(h("dd", {}, this.progress));
  }

  set(key, value, hint = "") {
    setText(this.values[key], value);
    setText(this.hints[key], hint);
    show(this.hints[key], hint !== "");
  }

  update(run, depths) {
    const isRunning = run.state === "running";
    const progress = isRunning && run.parents > 0 ? run.expanded / run.parents : null;
    this.set("depth", number(run.depth), progress === null ? `width ${short(run.width)}` : `next depth ${percent(progress)}, width ${short(run.width)}`);
    show(this.progress, progress !== null);
    if (progress !== null) this.progress.value = Math.min(1, progress);
    this.set("lines", count(run.best_lines, "line"), run.pieces ? `${number(run.pieces)} pieces, read back` : "best well so far");
    const speed = depths.speed();
    this.set("speed", short(speed), depths.recent() > 0 ? `over the last ${count(depths.recent(), "depth")}` : "");
    this.set("time", duration(run.seconds), `submitted ${clock(run.submitted_ms)}`);
    const { cost } = run;
    const perWell = cost && depths.wells > 0 ? cost.dollars / depths.wells * 1e6 : null;
    this.set("cost", dollars(run.dollars), perWell === null ? "" : `${dollars(perWell)} per million wells`);
    const unpriced = cost?.unpriced_present ? `excluding ${count(cost.unpriced_present, "worker")} of unknown price` : "";
    this.set("rate", cost && isRunning ? dollars(cost.dollars_per_hour) : "–", isRunning ? unpriced : "");
    const end = run.projection;
    if (end && isRunning) {
      this.set("end", `in ${range(end.seconds, rough)}`, `depth ${range(end.depths, number)}, at ${range(end.seconds, (left) => clock(Date.now() + left * 1000))}`);
      this.set("total", range(end.dollars, dollars), end.basis);
    } else {
      this.set("end", "–", isRunning ? "too few depths yet" : "");
      this.set("total", "–", `${bytes(run.stored_bytes)} stored`);
    }
  }
}

/** A browser for the best well at each depth. */
class WellBrowser {
  constructor(depths, name) {
    this.depths = depths;
    this.name = name;
    /** Index of the selected depth, or null to show the last depth. */
    this.selected = null;
    this.canvas = h("canvas", { role: "img", "aria-label": "No well yet", "data-most": 280 });
    this.scrub = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Depth", oninput: () => this.choose(Number(this.scrub.value)) });
    this.title = h("p", { className: "well-title" });
    this.facts = h("p", { className: "hint" });
    this.link = h("a", { className: "button" }, icon("play"), "Game to this depth");
    this.element = h("section", { className: "wells", "aria-label": "Best well of each depth" },
      h("h2", {}, "Best well"), this.title, h("div", { className: "screen" }, this.canvas), this.scrub,
      h("div", { className: "transport" },
        iconButton("First depth", "first", () => this.choose(0)),
        iconButton("Previous depth", "before", () => this.choose(this.index() - 1)),
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
    return this.selected === null ? last : Math.min(this.selected, last);
  }

  choose(index) {
    const last = this.depths.length - 1;
    this.selected = index >= last ? null : Math.max(0, index);
    this.paint();
  }

  pick(depth) {
    const index = this.depths.indexOf(depth);
    if (index >= 0) this.choose(index);
  }

  update() {
    show(this.element, this.depths.length > 0);
    this.paint();
  }

  draw() {
    const { depths } = this;
    if (depths.length === 0) return;
    const index = this.index();
    const rows = rowsOf(depths.best_well[index], depths.width);
    setText(this.title, `Depth ${number(depths.depth[index])}, ${count(depths.best_lines[index], "line")}${this.selected === null ? ", last depth" : ""}`);
    if (Number(this.scrub.max) !== depths.length - 1) this.scrub.max = depths.length - 1;
    this.scrub.value = index;
    this.scrub.setAttribute("aria-valuetext", `depth ${depths.depth[index]}`);
    this.link.href = `#/run/${encodeURIComponent(this.name)}/game/${depths.depth[index]}`;
    if (rows === null) {
      setText(this.facts, "The well cannot be read.");
      return;
    }
    draw(this.canvas, { cells: cellsOf(rows, depths.width), width: depths.width });
    const text = describe(rows, depths.width);
    this.canvas.setAttribute("aria-label", text);
    setText(this.facts, `surface ${number(depths.surface[index])}, stack ${number(depths.stack[index])}; ${count(depths.count[index], "well")}`);
  }

  close() {
    removeEventListener("resize", this.paint);
    removeEventListener("theme", this.paint);
  }
}

/** A table with the values of the plots, divided into pages. */
class DepthTable {
  constructor(depths) {
    this.depths = depths;
    this.page = null;
    this.body = h("tbody");
    this.range = h("span");
    const names = ["Depth", "Wells", "Lines", "Best", "Median", "Cut", "Surface", "Stack", "Children", "Time", "Cost", "Bytes", "Kept"];
    const button = (text, work) => h("button", { type: "button", className: "small", onclick: work }, text);
    this.element = h("details", { className: "depths", ontoggle: () => this.update(true) },
      h("summary", {}, "Table of depths"),
      h("div", { className: "transport" },
        button("Last", () => this.showPage(null)), button("Later", () => this.showPage(this.current() + 1)),
        button("Earlier", () => this.showPage(this.current() - 1)), this.range),
      h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Depths" },
        h("table", {}, h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col", className: "num" }, name)))), this.body)));
  }

  pages() {
    return Math.max(1, Math.ceil(this.depths.length / DepthTable.ROWS));
  }

  current() {
    return Math.min(this.page ?? Infinity, this.pages() - 1);
  }

  showPage(page) {
    this.page = page === null || page >= this.pages() - 1 ? null : Math.max(0, page);
    this.update(true);
  }

  update(force = false) {
    // New depths change only the last page of the table.
    if (!this.element.open || !force && this.page !== null) return;
    const { depths } = this;
    const from = this.current() * DepthTable.ROWS;
    const to = Math.min(depths.length, from + DepthTable.ROWS);
    const rows = [];
    for (let i = to - 1; i >= from; i -= 1) {
      const values = [number(depths.count[i]), number(depths.best_lines[i]), number(depths.best_eval[i]),
        number(depths.median_eval[i]), number(depths.worst_eval[i]), number(depths.surface[i]), number(depths.stack[i]),
        short(depths.children[i]), duration(depths.seconds[i]), dollars(depths.dollars[i]), bytes(depths.bytes[i]),
        depths.kept[i] ? "yes" : "no"];
      rows.push(h("tr", {}, h("th", { scope: "row", className: "num" }, number(depths.depth[i])),
        ...values.map((value) => h("td", { className: "num" }, value))));
    }
    this.body.replaceChildren(...rows);
    setText(this.range, depths.length === 0 ? "no depths yet" : `depths ${number(depths.depth[from])} to ${number(depths.depth[to - 1])}`);
  }
}
DepthTable.ROWS = 100;
