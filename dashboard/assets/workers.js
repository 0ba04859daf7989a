// Workers: their table, and the page of them.

import { ask } from "./dialog.js";
import { h, put, show } from "./dom.js";
import { bytes, count, dollars, duration, percent } from "./format.js";
import { Live, call } from "./live.js";

/** What to do where there is no worker. */
export function empty() {
  return h("section", { className: "empty" },
    h("h2", {}, "No worker"),
    h("p", {}, "Nothing is searched without one. Start a worker on this machine, or on any other with the same object store:"),
    h("pre", { className: "command", tabIndex: 0 }, "hatebeam worker --store STORE --coordinator http://127.0.0.1:7800"));
}

const COLUMNS = ["Worker", "State", "This depth", "Threads", "Shards", "Memory", "Disk", "Uploads", "Machine", ""];

/** The table of workers; `set` is given all of them. */
export class WorkerTable {
  constructor() {
    this.rows = new Map();
    this.body = h("tbody");
    this.element = h("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Workers" },
      h("table", { className: "workers" },
        h("thead", {}, h("tr", {}, ...COLUMNS.map((name) => h("th", { scope: "col" }, name || h("span", { className: "unseen" }, "Actions"))))),
        this.body));
  }

  set(workers) {
    const names = new Set(workers.map((worker) => worker.worker));
    for (const [name, row] of this.rows) {
      if (names.has(name)) continue;
      row.element.remove();
      this.rows.delete(name);
    }
    workers.forEach((worker, at) => {
      let row = this.rows.get(worker.worker);
      if (!row) {
        row = makeRow(worker.worker);
        this.rows.set(worker.worker, row);
      }
      row.fill(worker);
      if (this.body.children[at] !== row.element) this.body.insertBefore(row.element, this.body.children[at] ?? null);
    });
  }
}

/** A bar and what it stands for. */
export function meter(label) {
  const bar = h("meter", { min: 0, max: 1, low: 0.8, high: 0.95, optimum: 0, "aria-label": label });
  const text = h("span");
  const element = h("span", { className: "meter" }, bar, text);
  return {
    element,
    set(part, words) {
      show(bar, part !== null);
      if (part !== null) bar.value = Math.min(1, Math.max(0, part));
      put(text, words);
    },
  };
}

function makeRow(name) {
  const [memory, disk] = [meter("memory used"), meter("disk used")];
  const progress = h("progress", { max: 1, value: 0, "aria-label": "of this depth" });
  const part = h("span");
  const cells = Object.fromEntries(["state", "threads", "shards", "uploads", "machine"].map((key) => [key, h("td")]));
  const chip = h("span", { className: "chip" });
  const note = h("div", { className: "note" });
  cells.state.append(chip, note);
  const drain = h("button", { type: "button", className: "small", onclick: () => askDrain(name) }, "Drain");
  drain.setAttribute("aria-label", `Drain ${name}`);
  const address = h("div", { className: "note" });
  const kind = h("div");
  const price = h("div", { className: "note" });
  cells.machine.append(kind, price);
  const element = h("tr", {}, h("th", { scope: "row" }, name, address), cells.state,
    h("td", {}, h("span", { className: "meter" }, progress, part)), cells.threads, cells.shards,
    h("td", {}, memory.element), h("td", {}, disk.element), cells.uploads, cells.machine, h("td", {}, drain));
  const fill = (worker) => {
    put(address, worker.address);
    const state = worker.slow ? "slow" : worker.state;
    chip.className = `chip ${state}`;
    put(chip, state);
    put(note, worker.silent_ms > 3000 ? `silent for ${duration(worker.silent_ms / 1000)}` : worker.note);
    show(progress, worker.parents > 0);
    if (worker.parents > 0) progress.value = Math.min(1, worker.expanded / worker.parents);
    put(part, worker.parents > 0 ? percent(worker.expanded / worker.parents) : "–");
    put(cells.threads, String(worker.threads));
    put(cells.shards, String(worker.shards));
    const ofMemory = worker.memory_bytes > 0 ? worker.rss_bytes / worker.memory_bytes : null;
    memory.set(ofMemory, ofMemory === null ? bytes(worker.rss_bytes) : `${bytes(worker.rss_bytes)} of ${bytes(worker.memory_bytes)}`);
    const ofDisk = worker.disk_bytes > 0 ? 1 - worker.disk_free_bytes / worker.disk_bytes : null;
    disk.set(ofDisk, `${bytes(worker.disk_free_bytes)} free`);
    put(cells.uploads, worker.uploading_bytes > 0 ? `${bytes(worker.uploading_bytes)} waiting` : "–");
    const machine = worker.machine;
    put(kind, [machine?.kind, machine?.market, machine?.zone ?? machine?.region].filter(Boolean).join(", ") || "not rented");
    const perHour = machine?.dollars_per_hour ?? null;
    put(price, perHour === null ? "price unknown" : `${dollars(perHour)} an hour`);
    price.title = machine?.price_from ?? "";
    drain.disabled = worker.state === "draining";
  };
  return { element, fill };
}

function askDrain(worker) {
  return ask({
    title: `Drain ${worker}?`,
    text: "It finishes the depth, hands its shards to the others, and its process ends. Nothing is lost; a run without any worker waits for one.",
    yes: "Drain it",
    danger: true,
    work: async () => {
      await call(`workers/${encodeURIComponent(worker)}/drain`, {});
      return `${worker} goes at the end of the depth`;
    },
  });
}

export function workersPage(main) {
  const table = new WorkerTable();
  const summary = h("p", { className: "hint" });
  const none = h("div", { hidden: true }, empty());
  show(table.element, false);
  main.replaceChildren(h("div", { className: "head" }, h("h1", {}, "Workers")), summary, none, table.element);
  const live = new Live(() => "events", {
    workers: (workers) => {
      table.set(workers);
      show(none, workers.length === 0);
      show(table.element, workers.length > 0);
      const threads = workers.reduce((sum, worker) => sum + worker.threads, 0);
      // Two workers on one machine rent it once.
      const ids = new Set();
      const rented = workers.filter(({ machine }) => !machine?.id || !ids.has(machine.id) && ids.add(machine.id));
      const prices = rented.map((worker) => worker.machine?.dollars_per_hour ?? null);
      const known = prices.filter((price) => price !== null).reduce((sum, price) => sum + price, 0);
      const unknown = prices.filter((price) => price === null).length;
      put(summary, `${count(workers.length, "worker")} with ${count(threads, "thread")}, ${dollars(known)} an hour` +
        (unknown > 0 ? `, not counting ${count(unknown, "worker")} whose price is not known` : ""));
    },
  });
  return () => live.close();
}
