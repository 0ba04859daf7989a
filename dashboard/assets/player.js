// The replay player: a film, key by key.

import { copy, download, h, oncePerFrame, put, say } from "./dom.js";
import { Film } from "./film.js";
import { count, number } from "./format.js";
import { iconButton, setIcon } from "./icons.js";
import { draw, valueOf } from "./well.js";

const ORIGINAL = "https://qntm.org/files/hatetris/hatetris.html";
/** Keys a second, by the places of the slider. */
const SPEEDS = [1, 2, 4, 8, 15, 30, 60, 120, 240, 600];
const USUAL = 4;
const ARROWS = { L: "←", R: "→", D: "↓", U: "↻" };
const NAMES = { L: "left", R: "right", D: "down", U: "turn" };

/** A player of a game; `name` is what its files are called. */
export class Player {
  constructor(told, name) {
    this.film = new Film(told);
    this.name = name;
    this.at = 0;
    this.playing = null;
    this.build();
    this.draw = oncePerFrame(() => this.paint());
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
    addEventListener("resize", this.draw);
    addEventListener("theme", this.draw);
  }

  build() {
    const { film } = this;
    this.canvas = h("canvas", { role: "img", "data-most": 320 });
    this.playButton = iconButton("Play", "play", () => this.toggle(), "main play");
    this.scrub = h("input", {
      type: "range", min: 0, max: film.length, value: 0, "aria-label": "Place in the game, in keys",
      oninput: () => this.go(Number(this.scrub.value)),
    });
    this.speed = h("input", {
      type: "range", min: 0, max: SPEEDS.length - 1, value: USUAL, id: "speed", oninput: () => this.showSpeed(),
    });
    this.speedText = h("output", { for: "speed" });
    this.piece = h("dd", { className: "piece" });
    this.number = h("dd");
    this.score = h("dd");
    this.keyCount = h("dd");
    this.keys = h("p", { className: "keys", "aria-label": "Keys of this piece" });
    const fact = (term, value) => h("div", {}, h("dt", {}, term), value);
    this.element = h("section", { className: "player", "aria-label": "Replay player" },
      h("div", { className: "screen" }, this.canvas),
      h("div", { className: "controls" },
        h("dl", { className: "facts" },
          fact("Piece", this.piece), fact("Number", this.number), fact("Lines", this.score), fact("Keys", this.keyCount)),
        this.keys,
        this.scrub,
        h("div", { className: "transport", role: "group", "aria-label": "Playing" },
          iconButton("To the first piece", "first", () => this.go(0)),
          iconButton("Piece back", "back", () => this.stepPiece(-1)),
          iconButton("Key back", "before", () => this.step(-1)),
          this.playButton,
          iconButton("Key forward", "next", () => this.step(1)),
          iconButton("Piece forward", "forward", () => this.stepPiece(1)),
          iconButton("To the end", "last", () => this.go(film.length))),
        h("label", { className: "pace", for: "speed" }, "Speed ", this.speed, this.speedText),
        h("div", { className: "buttons" },
          h("button", { type: "button", onclick: () => copy(film.base2048, "Replay") }, "Copy as Base2048"),
          h("button", { type: "button", onclick: () => this.save("txt") }, "Base2048 file"),
          h("button", { type: "button", onclick: () => this.save("keys") }, "Keys as letters"),
          h("button", { type: "button", onclick: () => this.save("json") }, "JSON with every well"),
          h("a", { className: "button", href: ORIGINAL, target: "_blank", rel: "noreferrer noopener" }, "Open the original game ↗")),
        h("p", { className: "hint" },
          "The original game plays a replay that is pasted into it as Base2048. Keys here: space plays and stops; ",
          h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " a key; ", h("kbd", {}, "Page Up"), " ", h("kbd", {}, "Page Down"),
          " a piece; ", h("kbd", {}, "Home"), " ", h("kbd", {}, "End"), ".")));
    this.showSpeed();
  }

  showSpeed() {
    put(this.speedText, `${count(SPEEDS[Number(this.speed.value)], "key")} a second`);
    this.speed.setAttribute("aria-valuetext", this.speedText.textContent);
  }

  toggle() {
    if (this.playing !== null) this.stop();
    else this.play();
  }

  play() {
    if (this.at >= this.film.length) this.at = 0;
    let last = performance.now();
    let owed = 0;
    const tick = (now) => {
      owed += (now - last) / 1000 * SPEEDS[Number(this.speed.value)];
      last = now;
      const keys = Math.floor(owed);
      owed -= keys;
      if (keys > 0) this.move(this.at + keys);
      if (this.at >= this.film.length) this.stop();
      else this.playing = requestAnimationFrame(tick);
    };
    this.playing = requestAnimationFrame(tick);
    this.showPlaying(true);
  }

  stop() {
    if (this.playing !== null) cancelAnimationFrame(this.playing);
    this.playing = null;
    this.showPlaying(false);
    this.tell();
  }

  showPlaying(is) {
    setIcon(this.playButton, is ? "Pause" : "Play", is ? "pause" : "play");
  }

  /** Stops there. */
  go(keys) {
    if (this.playing !== null) this.stop();
    this.move(keys);
    this.tell();
  }

  move(keys) {
    this.at = Math.max(0, Math.min(this.film.length, keys));
    this.draw();
  }

  step(by) {
    this.go(this.at + by);
  }

  stepPiece(by) {
    const { film } = this;
    const index = film.turnAt(this.at);
    const isInside = this.at > film.first[index];
    const next = by > 0 ? index + 1 : isInside ? index : index - 1;
    this.go(next < film.turns.length ? film.first[Math.max(0, next)] : film.length);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const { target } = event;
    const isIn = (selector) => target.closest?.(selector);
    // A button does itself what the space bar does, and a slider what arrows do.
    if (isIn("input:not([type=range]), select, textarea")) return;
    if (isIn("button, a, summary") && event.key === " ") return;
    if (isIn("input") && event.key !== " ") return;
    const work = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      PageUp: () => this.stepPiece(-1),
      PageDown: () => this.stepPiece(1),
      Home: () => this.go(0),
      End: () => this.go(this.film.length),
    }[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  }

  paint() {
    const { film } = this;
    const frame = film.frame(this.at);
    const { turn } = frame;
    draw(this.canvas, {
      cells: frame.cells, width: film.width, above: film.above, falling: frame.falling, piece: valueOf(turn.piece),
    });
    if (this.scrub.value !== String(this.at)) this.scrub.value = this.at;
    this.scrub.setAttribute("aria-valuetext", `piece ${turn.number}, key ${this.at} of ${film.length}`);
    put(this.piece, frame.isOver ? `${turn.piece}, over` : turn.piece);
    put(this.number, `${number(turn.number)} of ${number(film.pieces)}`);
    put(this.score, `${number(frame.score)} of ${number(film.score)}`);
    put(this.keyCount, `${number(this.at)} of ${number(film.length)}`);
    this.paintKeys(frame);
  }

  paintKeys({ turn, pressed, isOver }) {
    const done = isOver ? turn.keys.length : pressed;
    const shown = [...turn.keys].map((key, at) => h("span", {
      className: at < done ? "done" : at === done ? "next" : "", title: NAMES[key],
    }, ARROWS[key]));
    this.keys.replaceChildren(...shown);
  }

  /** For those who do not see it; not while it plays. */
  tell() {
    if (this.playing !== null) return;
    const frame = this.film.frame(this.at);
    const text = frame.isOver
      ? `The game is over with ${count(frame.score, "line")} after ${count(this.film.pieces, "piece")}`
      : `Piece ${frame.turn.number}, ${frame.turn.piece}, ${count(frame.score, "line")}, key ${frame.pressed} of ${frame.turn.keys.length}`;
    this.canvas.setAttribute("aria-label", text);
    say(text);
  }

  save(kind) {
    const { film, name } = this;
    if (kind === "txt") download(`${name}.txt`, "text/plain", `${film.base2048}\n`);
    else if (kind === "keys") download(`${name}-keys.txt`, "text/plain", `${film.letters()}\n`);
    else {
      const { enemy, width, height, above, score, pieces, keys, over, base2048, turns, end } = film;
      const whole = { enemy, width, height, above, score, pieces, keys, over, base2048, turns, end };
      download(`${name}.json`, "application/json", JSON.stringify(whole));
    }
  }

  close() {
    if (this.playing !== null) cancelAnimationFrame(this.playing);
    document.removeEventListener("keydown", this.onKey);
    removeEventListener("resize", this.draw);
    removeEventListener("theme", this.draw);
  }
}
