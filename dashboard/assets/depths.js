// The depth records of a run, stored as one list per field, because plots require lists.

import { rowsOf, stackHeight, surfaceHeight } from "./well.js";

/** Names of the fields of a record, each of which has a list with the same name. */
const FIELDS = ["depth", "count", "best_eval", "median_eval", "worst_eval", "best_lines", "best_well", "children", "seconds",
  "bytes", "kept", "dollars"];
/** Names of computed lists: surface height and stack height of the best well, and cost of all depths so far in dollars. */
const COMPUTED = ["surface", "stack", "total_dollars"];
const LISTS = [...FIELDS, ...COMPUTED];
/** Maximum number of depths over which the speed is measured. */
const RECENT = 10;

export class Depths {
  constructor() {
    for (const name of LISTS) this[name] = [];
    /** Number of columns in the well. */
    this.width = 10;
    /** Number of wells at all depths. */
    this.wells = 0;
  }

  get length() {
    return this.depth.length;
  }

  /** Returns the depth of the last record, or 0 if there are no records. */
  get last() {
    return this.depth.at(-1) ?? 0;
  }

  /** Returns the depth after the last record, or 0 if there are no records. */
  get next() {
    return this.length === 0 ? 0 : this.last + 1;
  }

  /** Returns whether a record differs from the stored record of its depth, which means that the depth was searched again. */
  isReplacedBy(record) {
    const index = this.indexOf(record.depth);
    return index >= 0 && this.seconds[index] !== record.seconds;
  }

  add(records, run) {
    this.width = run?.spec?.well?.columns ?? this.width;
    for (const record of records) {
      // A run that returned to an earlier depth searches the later depths again and sends new records.
      if (record.depth < this.next) this.removeFrom(record.depth);
      for (const name of FIELDS) this[name].push(record[name]);
      const rows = rowsOf(record.best_well, this.width);
      this.stack.push(rows === null ? null : stackHeight(rows));
      this.surface.push(rows === null ? null : surfaceHeight(rows, this.width));
      this.total_dollars.push((this.total_dollars.at(-1) ?? 0) + record.dollars);
      this.wells += record.count;
    }
  }

  removeFrom(depth) {
    while (this.length > 0 && this.depth.at(-1) >= depth) {
      this.wells -= this.count.at(-1);
      for (const name of LISTS) this[name].pop();
    }
  }

  /** Returns the index of a depth, or -1 if the depth has no record. */
  indexOf(depth) {
    if (this.length === 0) return -1;
    const index = depth - this.depth[0];
    return this.depth[index] === depth ? index : this.depth.indexOf(depth);
  }

  /** Returns the number of depths over which the speed is measured. */
  recent() {
    return Math.min(RECENT, this.length);
  }

  /** Returns the number of children per second over the most recent depths, or null if no time has been measured. */
  speed() {
    let [children, seconds] = [0, 0];
    for (let index = Math.max(0, this.length - RECENT); index < this.length; index += 1) {
      children += this.children[index];
      seconds += this.seconds[index];
    }
    return seconds > 0 ? children / seconds : null;
  }

  csv() {
    const names = [...FIELDS, "surface", "stack"];
    const lines = [names.join()];
    for (let index = 0; index < this.length; index += 1) lines.push(names.map((name) => this[name][index] ?? "").join());
    return `${lines.join("\n")}\n`;
  }
}
