// The form for a new run, with what it would take.

import { ask } from "./dialog.js";
import { h, put, show } from "./dom.js";
import { bytes, count, dollars, number, range, rough, short, wells } from "./format.js";
import { call } from "./live.js";

const EVALUATORS = [
  ["patterns", "patterns: learned tables; scores most"],
  ["knewjade", "knewjade: a weighted sum of features; twice as fast"],
  ["plain", "plain: holes and lines; to compare with"],
  ["plain-holes", "plain-holes: holes alone; to compare with"],
];
const QUIESCENCES = [
  ["off", "off: a well is worth what it is"],
  ["forced", "forced: lines that every piece can clear are followed"],
  ["single", "single: the first piece that clears one line is followed"],
];
const KEEPS = [
  ["all", "all depths"],
  ...[2, 3, 4, 5, 6].map((every) => [String(every), `every ${every}th depth`]),
  ["last", "the last depth alone (no game can be read back)"],
];
/** After the last change, before an estimate is asked for. */
const PAUSE = 400;

export function submitPage(main) {
  const page = new SubmitPage(main);
  return () => page.close();
}

class SubmitPage {
  constructor(main) {
    this.fields = {};
    this.form = h("form", { className: "submit", noValidate: true, onsubmit: (event) => this.submit(event), oninput: () => this.change() });
    const starts = this.starts();
    this.problem = h("p", { className: "problem", role: "alert", hidden: true });
    this.form.append(
      group("What is searched",
        this.text("width", "Width", "100k", "Wells kept of each depth; k, M and G stand for thousands, millions and thousands of millions. Twice the width takes twice the time and money, and finds some lines more.", { inputMode: "text", required: true }),
        this.select("evaluator", "Evaluator", EVALUATORS, "What a well is worth: by this the best of each depth are chosen."),
        this.select("quiescence", "Quiescence", QUIESCENCES, "Whether a well is judged by what it can reach by clearing lines in a row. Takes twice the time.")),
      group("Limits",
        this.text("maxDollars", "Dollars at most", "", "The run ends with everything committed and the best game read back before it costs more. Empty: no limit.", { inputMode: "decimal" }),
        this.text("maxHours", "Hours at most", "", "The same by the time it is searched. Empty: no limit.", { inputMode: "decimal" }),
        this.text("maxDepth", "Depth at most", "", "Pieces after which it stops. Empty: until no well lives on.", { inputMode: "numeric" })),
      group("Kept in the object store",
        this.select("keep", "Wells of", KEEPS, "Every depth makes reading a game back fast. Fewer cost less to store, and more to read back."),
        this.text("shards", "Shards", "", "Into how many parts a depth is divided among the workers: many more than workers, 1 to 4096. Empty: 64, or one a million wells.", { inputMode: "numeric" })),
      h("details", { className: "group" }, h("summary", {}, "The well, and where the search begins"),
        this.text("columns", "Columns", "10", "Of the well, 4 to 16. The game has 10.", { inputMode: "numeric" }),
        this.text("rows", "Rows", "16", "Below the bar, 1 to 16. The game has 16; columns times rows may be 160 at most.", { inputMode: "numeric" }),
        this.check("clearAboveBar", "Clear full rows even where the piece reaches above the bar", "As an emulator of 2022 did; the game does not."),
        ...starts),
      this.problem,
      h("div", { className: "buttons" }, h("button", { type: "submit", className: "main" }, "Submit …")));
    this.estimate = h("div", { "aria-live": "polite" }, h("p", { className: "hint" }, "…"));
    main.replaceChildren(
      h("div", { className: "head" }, h("h1", {}, "New run")),
      h("div", { className: "columns form" }, this.form,
        h("aside", { className: "estimate", "aria-label": "Estimate" }, h("h2", {}, "What it would take"), this.estimate)));
    this.showStart();
    this.change();
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
    this.fields[key] = { input };
    return h("div", { className: "field check" }, h("label", { for: key }, input, ` ${label}`), h("p", { className: "hint", id: `${key}-hint` }, hint));
  }

  field(key, label, input, hint) {
    const wrong = h("p", { className: "problem", id: `${key}-wrong`, hidden: true });
    const element = h("div", { className: "field" }, h("label", { for: key }, label), input, wrong, h("p", { className: "hint", id: `${key}-hint` }, hint));
    this.fields[key] = { input, wrong, element };
    return element;
  }

  starts() {
    const start = this.select("start", "The search begins with", [
      ["empty", "the empty well"], ["well", "a well"], ["replay", "a piece of a replay"],
    ], "A run from a replay finds games that begin as it does.");
    const hex = this.text("startWell", "The well", "", "In hex, rows from the top, as `hatebeam well` prints it.");
    const replay = this.text("startReplay", "The replay", "", "In Base2048, as the game prints it.");
    const piece = this.text("startPiece", "The piece", "1", "Its number, from 1: the search starts with the well it comes into.", { inputMode: "numeric" });
    return [start, hex, replay, piece];
  }

  showStart() {
    const start = this.fields.start.input.value;
    show(this.fields.startWell.element, start === "well");
    show(this.fields.startReplay.element, start === "replay");
    show(this.fields.startPiece.element, start === "replay");
  }

  value(key) {
    return this.fields[key].input.value.trim();
  }

  wrong(key, text) {
    const { input, wrong } = this.fields[key];
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

  /** What is to be submitted; null if a field is wrong. */
  read() {
    this.faults = [];
    const width = wells(this.value("width"));
    this.wrong("width", width === null ? "Give a whole number of wells such as 10000, 100k or 2.5M, up to 1.07G." : null);
    const body = {
      spec: {
        width,
        well: {
          columns: this.whole("columns", 4, 16),
          rows: this.whole("rows", 1, 16),
          clear_above_bar: this.fields.clearAboveBar.input.checked,
        },
        start: this.readStart(),
        evaluator: { kind: this.value("evaluator"), quiescence: this.value("quiescence") },
      },
      shards: this.whole("shards", 1, 4096, 0),
      keep: this.value("keep"),
      max_depth: this.whole("maxDepth", 1, 1e9, 0),
      max_dollars: this.positive("maxDollars", 1e9),
      max_hours: this.positive("maxHours", 876_000),
    };
    return this.faults.length > 0 ? null : body;
  }

  readStart() {
    const start = this.value("start");
    const need = (key, text) => {
      this.wrong(key, start === key.replace("start", "").toLowerCase() && this.value(key) === "" ? text : null);
      return this.value(key);
    };
    const hex = need("startWell", "Give the well in hex.");
    const base2048 = need("startReplay", "Paste the replay.");
    if (start === "well") return { well: { hex } };
    if (start === "replay") return { replay: { base2048, piece: this.whole("startPiece", 1, 1e6) } };
    return "empty";
  }

  change() {
    this.showStart();
    show(this.problem, false);
    clearTimeout(this.timer);
    this.stop?.abort();
    const body = this.read();
    if (body === null) {
      this.estimate.replaceChildren(h("p", { className: "hint" }, "When the fields are right, what the run would take is said here."));
      return;
    }
    this.timer = setTimeout(() => this.ask(body), PAUSE);
  }

  async ask(body) {
    this.stop = new AbortController();
    try {
      this.told = await call("estimate", body, { signal: this.stop.signal });
      this.estimate.replaceChildren(...estimateLines(this.told));
    } catch (error) {
      if (error.name === "AbortError") return;
      this.told = null;
      this.estimate.replaceChildren(h("p", { className: "hint" }, `No estimate: ${error.message}`));
    }
  }

  async submit(event) {
    event.preventDefault();
    const body = this.read();
    if (body === null) {
      const { input } = this.fields[this.faults[0]];
      input.closest("details")?.setAttribute("open", "");
      input.focus();
      return;
    }
    clearTimeout(this.timer);
    await this.ask(body);
    const limits = [
      body.max_dollars > 0 && `${dollars(body.max_dollars)}`,
      body.max_hours > 0 && `${count(body.max_hours, "hour")}`,
      body.max_depth > 0 && `depth ${number(body.max_depth)}`,
    ].filter(Boolean);
    await ask({
      title: `Start a run ${short(body.spec.width)} wells wide?`,
      text: [
        ...(this.told ? estimateLines(this.told) : ["What it would take is not known."]),
        limits.length > 0 ? `It ends at ${limits.join(" or ")}.` : "It has no limit: it ends when no well lives on, or when you stop it.",
      ],
      yes: "Start it",
      work: async () => {
        const run = await call("runs", body);
        location.hash = `#/run/${encodeURIComponent(run.run)}`;
        return "The run is in the queue";
      },
    });
  }

  close() {
    clearTimeout(this.timer);
    this.stop?.abort();
  }
}

function group(title, ...fields) {
  return h("fieldset", { className: "group" }, h("legend", {}, title), ...fields);
}

function estimateLines(told) {
  const fact = (term, value) => h("div", {}, h("dt", {}, term), h("dd", {}, value));
  return [
    h("dl", { className: "facts wide" },
      fact("Time", range(told.seconds, rough)),
      fact("Cost", told.dollars === null ? "unknown" : range(told.dollars, dollars)),
      fact("Workers", told.dollars_per_hour === null ? number(told.workers) : `${number(told.workers)}, ${dollars(told.dollars_per_hour)} an hour`),
      fact("Depths", range(told.depths, number)),
      fact("Stored", `${bytes(told.stored_bytes)}, ${dollars(told.storage_dollars_per_month)} a month`)),
    h("p", { className: "hint" }, `Judged by ${told.judged_by}.`),
    ...told.warnings.map((text) => h("p", { className: "banner" }, text)),
  ];
}
