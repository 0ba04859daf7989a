// The form for a new run, with what it would take.

import { ask } from "./dialog.js";
import { h, show } from "./dom.js";
import { Fields, limitFields, readLimits } from "./fields.js";
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
    this.fields = new Fields();
    this.form = h("form", { className: "submit", noValidate: true, onsubmit: (event) => this.submit(event), oninput: () => this.change() });
    const starts = this.starts();
    this.problem = h("p", { className: "problem", role: "alert", hidden: true });
    this.form.append(
      group("What is searched",
        this.fields.text("width", "Width", "100k", "Wells kept of each depth; k, M and G stand for thousands, millions and thousands of millions. Twice the width takes twice the time and money, and finds some lines more.", { inputMode: "text", required: true }),
        this.fields.select("evaluator", "Evaluator", EVALUATORS, "What a well is worth: by this the best of each depth are chosen."),
        this.fields.select("quiescence", "Quiescence", QUIESCENCES, "Whether a well is judged by what it can reach by clearing lines in a row. Takes twice the time.")),
      group("Limits",
        ...limitFields(this.fields)),
      group("Kept in the object store",
        this.fields.select("keep", "Wells of", KEEPS, "Every depth makes reading a game back fast. Fewer cost less to store, and more to read back."),
        this.fields.text("shards", "Shards", "", "Into how many parts a depth is divided among the workers: many more than workers, 1 to 4096. Empty: 64, or one a million wells.", { inputMode: "numeric" })),
      h("details", { className: "group" }, h("summary", {}, "The well, and where the search begins"),
        this.fields.text("columns", "Columns", "10", "Of the well, 4 to 16. The game has 10.", { inputMode: "numeric" }),
        this.fields.text("rows", "Rows", "16", "Below the bar, 1 to 16. The game has 16; columns times rows may be 160 at most.", { inputMode: "numeric" }),
        this.fields.check("clearAboveBar", "Clear full rows even where the piece reaches above the bar", "As an emulator of 2022 did; the game does not."),
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

  starts() {
    const start = this.fields.select("start", "The search begins with", [
      ["empty", "the empty well"], ["well", "a well"], ["replay", "a piece of a replay"],
    ], "A run from a replay finds games that begin as it does.");
    const hex = this.fields.text("startWell", "The well", "", "In hex, rows from the top, as `hatebeam well` prints it.");
    const replay = this.fields.text("startReplay", "The replay", "", "In Base2048, as the game prints it.");
    const piece = this.fields.text("startPiece", "The piece", "1", "Its number, from 1: the search starts with the well it comes into.", { inputMode: "numeric" });
    return [start, hex, replay, piece];
  }

  showStart() {
    const start = this.fields.all.start.input.value;
    show(this.fields.all.startWell.element, start === "well");
    show(this.fields.all.startReplay.element, start === "replay");
    show(this.fields.all.startPiece.element, start === "replay");
  }

  /** What is to be submitted; null if a field is wrong. */
  read() {
    this.fields.faults = [];
    const width = wells(this.fields.value("width"));
    this.fields.wrong("width", width === null ? "Give a whole number of wells such as 10000, 100k or 2.5M, up to 1.07G." : null);
    const body = {
      spec: {
        width,
        well: {
          columns: this.fields.whole("columns", 4, 16),
          rows: this.fields.whole("rows", 1, 16),
          clear_above_bar: this.fields.all.clearAboveBar.input.checked,
        },
        start: this.readStart(),
        evaluator: { kind: this.fields.value("evaluator"), quiescence: this.fields.value("quiescence") },
      },
      shards: this.fields.whole("shards", 1, 4096, 0),
      keep: this.fields.value("keep"),
      ...readLimits(this.fields),
    };
    return this.fields.faults.length > 0 ? null : body;
  }

  readStart() {
    const start = this.fields.value("start");
    const need = (key, text) => {
      this.fields.wrong(key, start === key.replace("start", "").toLowerCase() && this.fields.value(key) === "" ? text : null);
      return this.fields.value(key);
    };
    const hex = need("startWell", "Give the well in hex.");
    const base2048 = need("startReplay", "Paste the replay.");
    if (start === "well") return { well: { hex } };
    if (start === "replay") return { replay: { base2048, piece: this.fields.whole("startPiece", 1, 1e6) } };
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
      this.fields.focusFault();
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
