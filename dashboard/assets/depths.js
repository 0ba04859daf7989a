// The records of a run's depths, a list for each value: what plots take.

import { rowsOf, stackHeight, surfaceHeight } from "./well.js";

/** The name of a list, and the value of a record that goes into it. */
const VALUES = {
  depth: (record) => record.depth,
  count: (record) => record.count,
  best: (record) => record.best_score,
  median: (record) => record.median_score,
  cut: (record) => record.worst_score,
  points: (record) => record.points,
  well: (record) => record.best_well,
  children: (record) => record.children,
  seconds: (record) => record.seconds,
  bytes: (record) => record.bytes,
  kept: (record) => record.kept,
  dollars: (record) => record.dollars,
};
const OWN = ["surface", "stack", "spent"];
/** Depths that the speed is measured over. */
const RECENT = 10;

export class Depths {
  constructor() {
    for (const name of [...Object.keys(VALUES), ...OWN]) this[name] = [];
    /** Columns of the well. */
    this.width = 10;
    /** Wells of all depths. */
    this.wells = 0;
  }

  get length() {
    return this.depth.length;
  }

  /** The first depth that is not known yet. */
  get next() {
    return this.length === 0 ? 0 : this.depth.at(-1) + 1;
  }

  add(records, run) {
    this.width = run?.spec?.well?.columns ?? this.width;
    for (const record of records) {
      // A run that went back searches depths anew.
      if (record.depth < this.next) this.cutFrom(record.depth);
      for (const [name, value] of Object.entries(VALUES)) this[name].push(value(record));
      const rows = rowsOf(record.best_well, this.width);
      this.stack.push(rows === null ? null : stackHeight(rows));
      this.surface.push(rows === null ? null : surfaceHeight(rows, this.width));
      this.spent.push((this.spent.at(-1) ?? 0) + record.dollars);
      this.wells += record.count;
    }
  }

  cutFrom(depth) {
    while (this.length > 0 && this.depth.at(-1) >= depth) {
      this.wells -= this.count.at(-1);
      for (const name of [...Object.keys(VALUES), ...OWN]) this[name].pop();
    }
  }

  /** The place of a depth, or -1. */
  indexOf(depth) {
    if (this.length === 0) return -1;
    const at = depth - this.depth[0];
    return this.depth[at] === depth ? at : this.depth.indexOf(depth);
  }

  recent() {
    return Math.min(RECENT, this.length);
  }

  /** Children a second of late; null before the first depth. */
  speed() {
    let [children, seconds] = [0, 0];
    for (let at = Math.max(0, this.length - RECENT); at < this.length; at += 1) {
      children += this.children[at];
      seconds += this.seconds[at];
    }
    return seconds > 0 ? children / seconds : null;
  }

  csv() {
    const names = [...Object.keys(VALUES), "surface", "stack"];
    const lines = [names.join()];
    for (let at = 0; at < this.length; at += 1) lines.push(names.map((name) => this[name][at] ?? "").join());
    return `${lines.join("\n")}\n`;
  }
}
