// Fields of a form: what they are, what is wrong with them, and those that several forms have.

import { h, put, show } from "./dom.js";
import { number } from "./format.js";

export class Fields {
  constructor() {
    this.all = {};
    /** Those in which something is wrong. */
    this.faults = [];
  }

  text(key, label, value, hint, more = {}) {
    const input = h("input", { type: "text", id: key, autocomplete: "off", spellcheck: false, "aria-describedby": `${key}-hint ${key}-wrong`, ...more });
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
    const wrong = h("p", { className: "problem", id: `${key}-wrong`, hidden: true });
    const element = h("div", { className: "field" }, h("label", { for: key }, label), input, wrong, h("p", { className: "hint", id: `${key}-hint` }, hint));
    this.all[key] = { input, wrong, element };
    return element;
  }

  value(key) {
    return this.all[key].input.value.trim();
  }

  wrong(key, text) {
    const { input, wrong } = this.all[key];
    put(wrong, text ?? "");
    show(wrong, Boolean(text));
    input.setAttribute("aria-invalid", text ? "true" : "false");
    if (text) this.faults.push(key);
  }

  /** A whole number of a field; `none` if it is empty. */
  whole(key, low, high, none) {
    const text = this.value(key);
    const value = text === "" ? none : Number(text);
    const isFine = text === "" ? none !== undefined : /^\d+$/.test(text) && value >= low && value <= high;
    this.wrong(key, isFine ? null : `Give a whole number from ${number(low)} to ${number(high)}.`);
    return isFine ? value : 0;
  }

  /** A number greater than zero; 0 if the field is empty. */
  positive(key, high) {
    const text = this.value(key);
    const value = text === "" ? 0 : Number(text.replace(",", "."));
    const isFine = text === "" || value > 0 && value <= high;
    this.wrong(key, isFine ? null : `Give a number above 0, up to ${number(high)}, or nothing.`);
    return isFine ? value : 0;
  }

  /** Puts whoever types where something is wrong. */
  focusFault() {
    const { input } = this.all[this.faults[0]];
    input.closest("details")?.setAttribute("open", "");
    input.focus();
  }
}

/** Where a run stops; `run` has what it has now. */
export function limitFields(fields, run = {}) {
  const value = (limit) => limit ? String(limit) : "";
  return [
    fields.text("maxDollars", "Dollars at most", value(run.max_dollars), "The run ends with everything committed and the best game read back before it costs more. Empty: no limit.", { inputMode: "decimal" }),
    fields.text("maxHours", "Hours at most", value(run.max_hours), "The same by the time it is searched. Empty: no limit.", { inputMode: "decimal" }),
    fields.text("maxDepth", "Depth at most", value(run.max_depth), "Pieces after which it stops. Empty: until no well lives on.", { inputMode: "numeric" }),
  ];
}

export function readLimits(fields) {
  return {
    max_depth: fields.whole("maxDepth", 1, 1e9, 0),
    max_dollars: fields.positive("maxDollars", 1e9),
    max_hours: fields.positive("maxHours", 876_000),
  };
}
