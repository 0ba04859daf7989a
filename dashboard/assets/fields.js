// Form fields with validation, and the fields for limits, which several forms share.

import { h, setText, show } from "./dom.js";
import { number } from "./format.js";

/** Maximum time limit of a run in hours; the server and the command line have the same. */
const MAX_HOURS = 1000000;

export class Fields {
  constructor() {
    this.all = {};
    /** Keys of the invalid fields. */
    this.invalid = [];
  }

  text(key, label, value, hint, more = {}) {
    const input = h("input", { type: "text", id: key, autocomplete: "off", spellcheck: false, "aria-describedby": `${key}-hint ${key}-error`, ...more });
    input.value = value;
    return this.field(key, label, input, hint);
  }

  select(key, label, options, hint) {
    const select = h("select", { id: key, "aria-describedby": `${key}-hint` }, ...options.map(([value, text]) => h("option", { value }, text)));
    return this.field(key, label, select, hint);
  }

  check(key, label, hint) {
    const input = h("input", { type: "checkbox", id: key, "aria-describedby": `${key}-hint` });
    this.all[key] = { input };
    return h("div", { className: "field check" }, h("label", { for: key }, input, ` ${label}`), h("p", { className: "hint", id: `${key}-hint` }, hint));
  }

  field(key, label, input, hint) {
    const error = h("p", { className: "problem", id: `${key}-error`, hidden: true });
    const element = h("div", { className: "field" }, h("label", { for: key }, label), input, error, h("p", { className: "hint", id: `${key}-hint` }, hint));
    this.all[key] = { input, error, element };
    return element;
  }

  value(key) {
    return this.all[key].input.value.trim();
  }

  /** Shows an error below a field, or removes the error if `text` is null. */
  setError(key, text) {
    const { input, error } = this.all[key];
    setText(error, text ?? "");
    show(error, Boolean(text));
    input.setAttribute("aria-invalid", text ? "true" : "false");
    if (text) this.invalid.push(key);
  }

  /** Returns the whole number in a field, or `fallback` if the field is empty, or 0 if it is invalid. */
  whole(key, low, high, fallback) {
    const text = this.value(key);
    const value = text === "" ? fallback : Number(text);
    const isValid = text === "" ? fallback !== undefined : /^\d+$/.test(text) && value >= low && value <= high;
    this.setError(key, isValid ? null : `Enter a whole number from ${number(low)} to ${number(high)}.`);
    return isValid ? value : 0;
  }

  /**
   * Returns the positive number in a field, or 0 if the field is empty or invalid. The decimal separator can be a comma. A
   * comma before exactly three digits is refused, because it may separate thousands, as in the numbers on the pages.
   */
  positive(key, high) {
    const text = this.value(key);
    const isAmbiguous = /,\d{3}(?!\d)/.test(text);
    const value = text === "" ? 0 : Number(text.replace(",", "."));
    const isValid = text === "" || !isAmbiguous && value > 0 && value <= high;
    const advice = isAmbiguous ? "Enter the number without a comma, which may separate thousands or decimals."
      : `Enter a number above 0, at most ${number(high)}, or leave the field empty.`;
    this.setError(key, isValid ? null : advice);
    return isValid ? value : 0;
  }

  /** Moves the focus to the first invalid field. */
  focusInvalid() {
    const { input } = this.all[this.invalid[0]];
    input.closest("details")?.setAttribute("open", "");
    input.focus();
  }
}

/** Adds the fields for the limits of a run and returns their elements. `run` contains the current limits. */
export function limitFields(fields, run = {}) {
  const value = (limit) => limit ? String(limit) : "";
  return [
    fields.text("maxDollars", "Cost limit in dollars", value(run.max_dollars), "The run stops before a depth that would exceed this cost. All finished depths are committed, and the best game is read back. Empty: no limit.", { inputMode: "decimal" }),
    fields.text("maxHours", "Time limit in hours", value(run.max_hours), "Maximum time for searching and waiting for workers. Empty: no limit.", { inputMode: "decimal" }),
    fields.text("maxDepth", "Depth limit in pieces", value(run.max_depth), "Number of pieces after which the run stops. Empty: the run continues until all games are over.", { inputMode: "numeric" }),
  ];
}

export function readLimits(fields) {
  return {
    max_depth: fields.whole("maxDepth", 1, 1e9, 0),
    max_dollars: fields.positive("maxDollars", 1e9),
    max_hours: fields.positive("maxHours", MAX_HOURS),
  };
}
