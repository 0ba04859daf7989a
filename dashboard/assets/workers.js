// The table of workers, and the page that shows it.

import { confirmAction } from "./dialog.js";
import { h, setText, show } from "./dom.js";
import { bytes, count, dollars, duration, percent } from "./format.js";
import { Live, call } from "./live.js";

/** Returns an element with instructions to start a worker. */
export function noWorkers() {
  return h("section", { className: "empty" },
    h("h2", {}, "No workers"),
    h("p", {}, "Runs wait until a worker connects. Start a worker on this machine, or on another machine with access to the same object store:"),
    h("pre", { className: "command", tabIndex: 0 }, "hatebeam worker --store STORE --coordinator http://127.0.0.1:7800"));
}

const COLUMNS = ["Worker", "State", "Progress", "Threads", "Shards", "Memory", "Disk", "Uploads", "Machine", ""];

/** The table of workers. `set` replaces its contents. */
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
    workers.forEach((worker, index) => {
      let row = this.rows.get(worker.worker);
      if (!row) {
        row = makeRow(worker.worker);
        this.rows.set(worker.worker, row);
      }
      row.fill(worker);
      if (this.body.children[index] !== row.element) this.body.insertBefore(row.element, this.body.children[index] ?? null);
    });
  }
}

/** Creates a meter with text next to it. */
export function meter(label) {
  const bar = h("meter", { min: 0, max: 1, low: 0.8, high: 0.95, optimum: 0, "aria-label": label });
  const text = h("span");
  const element = h("span", { className: "meter" }, bar, text);
  return {
    element,
    set(part, label) {
      show(bar, part !== null);
      if (part !== null) bar.value = Math.min(1, Math.max(0, part));
      setText(text, label);
    },
  };
}

function makeRow(name) {
  const [memory, disk] = [meter("memory used"), meter("disk used")];
  const progress = h("progress", { max: 1, value: 0, "aria-label": "progress of the depth" });
  const part = h("span");
  const cells = Object.fromEntries(["state", "threads", "shards", "uploads", "machine"].map((key) => [key, h("td")]));
  const chip = h("span", { className: "chip" });
  const note = h("div", { className: "note" });
  cells.state.append(chip, note);
  const drain = h("button", { type: "button", className: "small", onclick: () => confirmDrain(name, drain.dataset.undo === "yes") }, "Drain");
  drain.setAttribute("aria-label", `Drain ${name}`);
  const address = h("div", { className: "note" });
  const kind = h("div");
  const price = h("div", { className: "note" });
  cells.machine.append(kind, price);
  const element = h("tr", {}, h("th", { scope: "row" }, name, address), cells.state,
    h("td", {}, h("span", { className: "meter" }, progress, part)), cells.threads, cells.shards,
    h("td", {}, memory.element), h("td", {}, disk.element), cells.uploads, cells.machine, h("td", {}, drain));
  const fill = (worker) => {
    setText(address, worker.address);
    const state = worker.slow ? "slow" : worker.state;
    chip.className = `chip ${state}`;
    setText(chip, state);
    setText(note, worker.silent_ms > 3000 ? `silent for ${duration(worker.silent_ms / 1000)}` : worker.note);
    show(progress, worker.parents > 0);
    if (worker.parents > 0) progress.value = Math.min(1, worker.expanded / worker.parents);
    setText(part, worker.parents > 0 ? percent(worker.expanded / worker.parents) : "–");
    setText(cells.threads, String(worker.threads));
    setText(cells.shards, String(worker.shards));
    const memoryPart = worker.memory_bytes > 0 ? worker.rss_bytes / worker.memory_bytes : null;
    memory.set(memoryPart, memoryPart === null ? bytes(worker.rss_bytes) : `${bytes(worker.rss_bytes)} of ${bytes(worker.memory_bytes)}`);
    const diskPart = worker.disk_bytes > 0 ? 1 - worker.disk_free_bytes / worker.disk_bytes : null;
    disk.set(diskPart, `${bytes(worker.disk_free_bytes)} free`);
    setText(cells.uploads, worker.uploading_bytes > 0 ? `${bytes(worker.uploading_bytes)} waiting` : "–");
    const machine = worker.machine;
    setText(kind, [machine?.kind, machine?.market, machine?.zone ?? machine?.region].filter(Boolean).join(", ") || "not rented");
    const perHour = machine?.dollars_per_hour ?? null;
    setText(price, perHour === null ? "price unknown" : `${dollars(perHour)} per hour`);
    price.title = machine?.price_from ?? "";
    const drained = worker.state === "drained";
    setText(drain, drained ? "Undo drain" : "Drain");
    drain.setAttribute("aria-label", `${drained ? "Undo drain of" : "Drain"} ${name}`);
    drain.dataset.undo = drained ? "yes" : "";
    drain.disabled = worker.state === "draining";
  };
  return { element, fill };
}

function confirmDrain(worker, undo) {
  return confirmAction({
    title: undo ? `Undo the drain of ${worker}?` : `Drain ${worker}?`,
    text: undo
      ? "The worker gets shards again from the next depth."
      : "The worker finishes the current depth, and its shards move to the other workers. It stays connected and gets no shards until the drain is undone. No results are lost. A run without workers waits for one.",
    label: undo ? "Undo drain" : "Drain",
    danger: !undo,
    work: async () => {
      await call(`workers/${encodeURIComponent(worker)}/drain`, { undo });
      return undo ? `${worker} gets shards again` : `${worker} gets no shards after the current depth`;
    },
  });
}

export function workersPage(main) {
  const table = new WorkerTable();
  const summary = h("p", { className: "hint" });
  const none = h("div", { hidden: true }, noWorkers());
  show(table.element, false);
  main.replaceChildren(h("div", { className: "head" }, h("h1", {}, "Workers")), summary, none, table.element);
  const live = new Live(() => "events", {
    workers: (workers) => {
      table.set(workers);
      show(none, workers.length === 0);
      show(table.element, workers.length > 0);
      const threads = workers.reduce((sum, worker) => sum + worker.threads, 0);
      // Several workers can share a machine. Count its price only once.
      const ids = new Set();
      const rented = workers.filter(({ machine }) => !machine?.id || !ids.has(machine.id) && ids.add(machine.id));
      const prices = rented.map((worker) => worker.machine?.dollars_per_hour ?? null);
      const known = prices.filter((price) => price !== null).reduce((sum, price) => sum + price, 0);
      const unknown = prices.filter((price) => price === null).length;
      setText(summary, `${count(workers.length, "worker")} with ${count(threads, "thread")}, ${dollars(known)} per hour` +
        (unknown > 0 ? `, excluding ${count(unknown, "worker")} of unknown price` : ""));
    },
  });
  return () => live.close();
}
