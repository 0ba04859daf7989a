// The page with the form for a new run and an estimate of its time and cost.

import { confirmAction } from "./dialog.js";
import { h, show } from "./dom.js";
import { Fields, limitFields, readLimits } from "./fields.js";
import { bytes, dollars, exact, number, range, rough, short, wells } from "./format.js";
import { call } from "./live.js";

/** Evaluators that are neural networks. The specification names them by digests, which the coordinator sends. */
const NETWORKS = [
  ["network", "network: learned from its own searches; the default"],
  ["taught", "taught: a network that also learned from public games, which it replays in part"],
  ["relay", "relay: learned from its own searches and those of network; stronger, but not in wide beams"],
  ["chains", "chains: learned from its own searches; for wide beams with the quiescence first"],
  ["foresight", "foresight: learned from short searches, too; for the quiescence first-of-best"],
  ["outlook", "outlook: continues foresight; more lines with 1,400 wells or more; for the quiescence first-of-best"],
  ["selftaught", "selftaught: learned from its own longest games, which it replays in part; needs the loop rule"],
];
const EVALUATORS = [
  ["patterns", "patterns: learned tables; 1.1 to 1.5 times as fast, but clears fewer lines"],
  ["knewjade", "knewjade: weighted sum of features; faster, but clears fewer lines"],
  ["plain", "plain: holes and lines; for comparison"],
  ["plain-holes", "plain-holes: holes only; for comparison"],
];
const QUIESCENCES = [
  ["off", "off: score each well as it is"],
  ["forced", "forced: follow line clears that every piece can make"],
  ["first", "first: follow the first piece that cannot clear two lines (S in most wells)"],
  ["first-of-best", "first-of-best: first, but only for the best three children for each well kept"],
  ["single", "single: follow the first piece that clears exactly one line"],
];
const LOOPS = [
  ["ignore", "ignore: the best game is cut short where the rule changes a piece"],
  ["exact", "exact: the best game is valid to its end"],
];
const KEEPS = [
  ["", "all depths, or every 4th depth for more than 100 million wells"],
  ["all", "all depths"],
  ["2", "every 2nd depth"], ["3", "every 3rd depth"], ["4", "every 4th depth"], ["5", "every 5th depth"], ["6", "every 6th depth"],
  ["last", "only the last depth (no game can be read back)"],
];
/** Delay between the last change and the request for an estimate, in milliseconds. */
const ESTIMATE_DELAY = 400;

/** Shows the form. `networks` maps the name of each neural network in the program to its digest. */
export function submitPage(main, networks) {
  const page = new SubmitPage(main, networks);
  return () => page.close();
}

class SubmitPage {
  constructor(main, networks) {
    this.networks = networks;
    this.fields = new Fields();
    this.form = h("form", { className: "submit", noValidate: true, onsubmit: (event) => this.submit(event), oninput: () => this.change() });
    const starts = this.starts();
    this.problem = h("p", { className: "problem", role: "alert", hidden: true });
    this.form.append(
      group("Search",
        this.fields.text("width", "Width", "100k", "Number of wells kept at each depth; k, M and G stand for thousand, million and billion. Doubling the width doubles the time and the cost, and gains a few lines.", { inputMode: "text", required: true }),
        this.fields.select("evaluator", "Evaluator", [...NETWORKS.filter(([name]) => name in networks), ...EVALUATORS], "Scores the wells. Each depth keeps the wells with the highest scores."),
        this.fields.select("quiescence", "Quiescence", QUIESCENCES, "Scores a well by the best well it can reach with successive line clears. The search takes two to four times as long with first-of-best, and 5 to 17 times with first."),
        this.fields.select("loops", "Loop rule", LOOPS, "HATETRIS gives another piece if the game has already visited a well to which its piece can lead. This matters in games of more than about 300 pieces. Each worker then needs more memory, and all depths are kept.")),
      group("Limits",
        ...limitFields(this.fields)),
      group("Storage",
        this.fields.select("keep", "Keep wells of", KEEPS, "Depths whose wells are kept in the object store. Keeping fewer depths costs less storage, but makes it slower to read back a game."),
        this.fields.text("shards", "Shards", "", "Number of parts into which the wells of a depth are divided, 1 to 4096. The coordinator splits them for many workers or threads. Empty: at first one per million wells, at least 64.", { inputMode: "numeric" })),
      h("details", { className: "group" }, h("summary", {}, "Well and starting position"),
        this.fields.text("columns", "Columns", "10", "Columns of the well, 4 to 16. The game has 10.", { inputMode: "numeric" }),
        this.fields.text("rows", "Rows", "16", "Rows below the bar, 1 to 16. The game has 16. Columns × rows must be at most 160.", { inputMode: "numeric" }),
        this.fields.check("clearAboveBar", "Clear full rows even if the piece reaches above the bar", "A HATETRIS emulator from 2022 does this; the game does not."),
        ...starts),
      this.problem,
      h("div", { className: "buttons" }, h("button", { type: "submit", className: "main" }, "Submit …")));
    this.estimate = h("div", { "aria-live": "polite" }, h("p", { className: "hint" }, "…"));
    main.replaceChildren(
      h("div", { className: "head" }, h("h1", {}, "New run")),
      h("div", { className: "columns form" }, this.form,
        h("aside", { className: "estimate", "aria-label": "Estimate" }, h("h2", {}, "Estimate"), this.estimate)));
    this.showStart();
    this.change();
  }

  starts() {
    const start = this.fields.select("start", "Start from", [
      ["empty", "the empty well"], ["well", "a well"], ["replay", "a position of a replay"],
    ], "A run from a replay finds games that start like the replay.");
    const hex = this.fields.text("startWell", "The well", "", "In hex, top row first, as `hatebeam well` prints it.");
    const replay = this.fields.text("startReplay", "The replay", "", "In Base2048, as the game shows it.");
    const piece = this.fields.text("startPiece", "The piece", "1", "Number of the piece, counted from 1. The search starts from the well before this piece.", { inputMode: "numeric" });
    return [start, hex, replay, piece];
  }

  showStart() {
    const start = this.fields.all.start.input.value;
    show(this.fields.all.startWell.element, start === "well");
    show(this.fields.all.startReplay.element, start === "replay");
    show(this.fields.all.startPiece.element, start === "replay");
  }

  /** Returns the body of the request for the run, or null if a field is invalid. */
  read() {
    this.fields.invalid = [];
    const width = wells(this.fields.value("width"));
    this.fields.setError("width", width === null ? "Enter a whole number of wells such as 10000, 100k or 2.5M, at most 1.07G." : null);
    const body = {
      spec: {
        width,
        well: {
          columns: this.fields.whole("columns", 4, 16),
          rows: this.fields.whole("rows", 1, 16),
          clear_above_bar: this.fields.all.clearAboveBar.input.checked,
        },
        start: this.readStart(),
        evaluator: { kind: this.evaluatorKind(), quiescence: this.fields.value("quiescence") },
        loops: this.fields.value("loops"),
      },
      shards: this.fields.whole("shards", 1, 4096, 0),
      keep: this.fields.value("keep"),
      ...readLimits(this.fields),
    };
    return this.fields.invalid.length > 0 ? null : body;
  }

  evaluatorKind() {
    const name = this.fields.value("evaluator");
    return name in this.networks ? { network: this.networks[name] } : name;
  }

  readStart() {
    const start = this.fields.value("start");
    const required = (key, text) => {
      this.fields.setError(key, start === key.replace("start", "").toLowerCase() && this.fields.value(key) === "" ? text : null);
      return this.fields.value(key);
    };
    const hex = required("startWell", "Enter the well in hex.");
    const base2048 = required("startReplay", "Paste the replay.");
    if (start === "well") return { well: { hex } };
    if (start === "replay") return { replay: { base2048, piece: this.fields.whole("startPiece", 1, 1e6) } };
    return "empty";
  }

  change() {
    this.showStart();
    show(this.problem, false);
    clearTimeout(this.timer);
    this.abort?.abort();
    const body = this.read();
    if (body === null) {
      this.estimate.replaceChildren(h("p", { className: "hint" }, "Correct the invalid fields to see an estimate."));
      return;
    }
    this.timer = setTimeout(() => this.updateEstimate(body), ESTIMATE_DELAY);
  }

  async updateEstimate(body) {
    this.abort = new AbortController();
    try {
      this.lastEstimate = await call("estimate", body, { signal: this.abort.signal });
      this.estimate.replaceChildren(...estimateLines(this.lastEstimate));
    } catch (error) {
      if (error.name === "AbortError") return;
      this.lastEstimate = null;
      this.estimate.replaceChildren(h("p", { className: "hint" }, `No estimate: ${error.message}`));
    }
  }

  async submit(event) {
    event.preventDefault();
    const body = this.read();
    if (body === null) {
      this.fields.focusInvalid();
      return;
    }
    clearTimeout(this.timer);
    await this.updateEstimate(body);
    const limits = [
      body.max_dollars > 0 && `${dollars(body.max_dollars)}`,
      body.max_hours > 0 && `${exact(body.max_hours)} ${body.max_hours === 1 ? "hour" : "hours"}`,
      body.max_depth > 0 && `depth ${number(body.max_depth)}`,
    ].filter(Boolean);
    await confirmAction({
      title: `Start a run of width ${short(body.spec.width)}?`,
      text: [
        ...(this.lastEstimate ? estimateLines(this.lastEstimate) : ["No estimate is available."]),
        limits.length > 0 ? `It stops at ${limits.join(" or ")}.` : "It has no limit: it ends when all games are over, or when you stop it.",
      ],
      label: "Start",
      work: async () => {
        const run = await call("runs", body);
        location.hash = `#/run/${encodeURIComponent(run.run)}`;
        return "The run is queued";
      },
    });
  }

  close() {
    clearTimeout(this.timer);
    this.abort?.abort();
  }
}

function group(title, ...fields) {
  return h("fieldset", { className: "group" }, h("legend", {}, title), ...fields);
}

function estimateLines(estimate) {
  const fact = (term, value) => h("div", {}, h("dt", {}, term), h("dd", {}, value));
  return [
    h("dl", { className: "facts wide" },
      fact("Time", range(estimate.seconds, rough)),
      fact("Cost", estimate.dollars === null ? "unknown" : range(estimate.dollars, dollars)),
      fact("Workers", estimate.dollars_per_hour === null ? number(estimate.workers) : `${number(estimate.workers)}, ${dollars(estimate.dollars_per_hour)} per hour`),
      fact("Depths", range(estimate.depths, number)),
      fact("Stored", `${bytes(estimate.stored_bytes)}, ${dollars(estimate.storage_dollars_per_month)} per month`)),
    h("p", { className: "hint" }, `Basis: ${estimate.basis}.`),
    ...estimate.warnings.map((text) => h("p", { className: "banner" }, text)),
  ];
}
