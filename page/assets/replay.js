// The panel that plays replays and converts them between encodings.

import { copy, h, setText, show } from "./dom.js";
import { count, number } from "./figures.js";
import { iconButton, setIcon } from "./icons.js";

const ENCODINGS = ["base2048", "base65536", "hex", "raw"];
/** Keys per second at the positions of the slider. */
const SPEEDS = [4, 10, 25, 60, 150, 400, 1000];

export class ReplayPanel {
  constructor(tab) {
    this.tab = tab;
    this.animation = null;
    this.input = h("textarea", { id: "replay", rows: 3, spellcheck: false, placeholder: "Paste a replay in any encoding" });
    this.problem = h("p", { className: "problem", role: "alert", hidden: true });
    this.position = h("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Position", oninput: () => this.seek(Number(this.position.value)) });
    this.speed = h("input", { type: "range", id: "speed", min: 0, max: SPEEDS.length - 1, value: 2, oninput: () => this.showSpeed() });
    this.speedText = h("output", { for: "speed" });
    this.toggleButton = iconButton("Play", "play", () => this.toggle(), "play");
    this.text = h("p", { className: "note" });
    this.encoding = h("select", { id: "encoding" }, ...ENCODINGS.map((name) => h("option", { value: name }, name)));
    this.build();
    this.showSpeed();
  }

  build() {
    const step = (label, icon, work) => iconButton(label, icon, () => {
      this.pause();
      work();
    });
    this.element = h("section", { className: "panel" },
      h("h2", {}, "Replay"),
      this.position,
      h("div", { className: "transport" },
        step("First key", "first", () => this.tab.seek(0)),
        step("Previous piece", "before", () => this.tab.undo()),
        this.toggleButton,
        step("Next piece", "next", () => this.nextPiece()),
        step("Last key", "last", () => this.tab.seek(this.tab.state.keys))),
      h("div", { className: "row" }, h("label", { for: "speed" }, "Speed"), this.speed, this.speedText),
      this.text,
      h("div", { className: "row" }, h("label", { for: "encoding" }, "Encoding"), this.encoding,
        h("button", { type: "button", onclick: () => this.save() }, "Copy the replay")),
      h("div", { className: "load" }, h("label", { for: "replay" }, "Load a replay"), this.input,
        h("button", { type: "button", onclick: () => this.load() }, "Load")),
      this.problem);
  }

  show(state) {
    this.position.max = state.keys;
    this.position.value = state.at;
    this.position.setAttribute("aria-valuetext", `key ${state.at} of ${state.keys}, piece ${state.number}`);
    setText(this.text, `Key ${number(state.at)} of ${number(state.keys)}`);
    if (state.at >= state.keys) this.pause();
  }

  seek(to) {
    this.pause();
    this.tab.seek(to);
  }

  nextPiece() {
    const { number: before } = this.tab.state;
    let last = -1;
    // A failed request does not change the position.
    while (this.tab.state.at > last && this.tab.state.at < this.tab.state.keys && this.tab.state.number === before) {
      last = this.tab.state.at;
      this.tab.seek(last + 1);
    }
  }

  get keysPerSecond() {
    return SPEEDS[Number(this.speed.value)];
  }

  showSpeed() {
    setText(this.speedText, `${number(this.keysPerSecond)} keys a second`);
  }

  toggle() {
    if (this.animation !== null) this.pause();
    else this.play();
  }

  play() {
    const { state } = this.tab;
    if (state.at >= state.keys) {
      if (state.keys === 0) return;
      this.tab.seek(0);
    }
    let last = performance.now();
    let due = 0;
    const frame = (now) => {
      due += Math.min(now - last, 250) * this.keysPerSecond / 1000;
      last = now;
      // The first frame can have begun before `last`, so this can be negative.
      const steps = Math.max(0, Math.floor(due));
      due -= steps;
      this.animation = requestAnimationFrame(frame);
      // At the last key, `seek` cancels the frame requested above.
      if (steps > 0) this.tab.seek(Math.min(this.tab.state.at + steps, this.tab.state.keys));
    };
    this.animation = requestAnimationFrame(frame);
    setIcon(this.toggleButton, "Pause", "pause");
  }

  pause() {
    if (this.animation === null) return;
    cancelAnimationFrame(this.animation);
    this.animation = null;
    setIcon(this.toggleButton, "Play", "play");
  }

  load() {
    this.pause();
    try {
      const loaded = this.tab.engine.call({ call: "load", text: this.input.value, enemy: null });
      this.encoding.value = loaded.encoding;
      this.complain(loaded.fault);
      this.tab.beam.forget();
      this.tab.show(loaded.state);
      setText(this.text, `${count(loaded.state.keys, "key")} in ${loaded.encoding}`);
    } catch (error) {
      this.complain(error.message);
    }
  }

  complain(problem) {
    this.problem.textContent = problem ?? "";
    show(this.problem, problem !== null);
  }

  async save() {
    const saved = this.tab.call({ call: "save" });
    if (saved === null) return;
    const text = saved[this.encoding.value];
    this.input.value = text;
    await copy(text, "Replay");
  }
}
