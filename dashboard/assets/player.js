// The replay player.

import { announce, copy, download, h, oncePerFrame, setText } from "./dom.js";
import { Film } from "./film.js";
import { count, number } from "./format.js";
import { iconButton, setIcon } from "./icons.js";
import { draw, valueOf } from "./well.js";

const ORIGINAL = "https://qntm.org/files/hatetris/hatetris.html";
/** Keys per second for each position of the slider. */
const SPEEDS = [1, 2, 4, 8, 15, 30, 60, 120, 240, 600];
const DEFAULT_SPEED = 4;
const ARROWS = { L: "←", R: "→", D: "↓", U: "↻" };
const NAMES = { L: "left", R: "right", D: "down", U: "rotate" };

/** A player for one game. Names of downloaded files begin with `name`. */
export class Player {
  constructor(film, name) {
    this.film = new Film(film);
    this.name = name;
    this.position = 0;
    this.animation = null;
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
      type: "range", min: 0, max: film.length, value: 0, "aria-label": "Position in the game, in keys",
      oninput: () => this.seek(Number(this.scrub.value)),
    });
    this.speed = h("input", {
      type: "range", min: 0, max: SPEEDS.length - 1, value: DEFAULT_SPEED, id: "speed", oninput: () => this.showSpeed(),
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
          fact("Piece", this.piece), fact("Piece number", this.number), fact("Lines", this.score), fact("Keys", this.keyCount)),
        this.keys,
        this.scrub,
        h("div", { className: "transport", role: "group", "aria-label": "Playback" },
          iconButton("Go to start", "first", () => this.seek(0)),
          iconButton("Previous piece", "back", () => this.stepPiece(-1)),
          iconButton("Previous key", "before", () => this.step(-1)),
          this.playButton,
          iconButton("Next key", "next", () => this.step(1)),
          iconButton("Next piece", "forward", () => this.stepPiece(1)),
          iconButton("Go to end", "last", () => this.seek(film.length))),
        h("label", { className: "speed-control", for: "speed" }, "Speed ", this.speed, this.speedText),
        h("div", { className: "buttons" },
          h("button", { type: "button", onclick: () => copy(film.base2048, "Replay") }, "Copy as Base2048"),
          h("button", { type: "button", onclick: () => this.save("txt") }, "Download Base2048"),
          h("button", { type: "button", onclick: () => this.save("keys") }, "Download keys"),
          h("button", { type: "button", onclick: () => this.save("json") }, "Download JSON"),
          h("a", { className: "button", href: ORIGINAL, target: "_blank", rel: "noreferrer noopener" }, "Open the original game ↗")),
        h("p", { className: "hint" },
          "To watch the replay in the original game, paste its Base2048 text there. Keyboard: ",
          h("kbd", {}, "Space"), " play or pause; ", h("kbd", {}, "←"), " ", h("kbd", {}, "→"), " one key; ",
          h("kbd", {}, "Page Up"), " ", h("kbd", {}, "Page Down"), " one piece; ",
          h("kbd", {}, "Home"), " start; ", h("kbd", {}, "End"), " end.")));
    this.showSpeed();
  }

  showSpeed() {
    setText(this.speedText, `${count(SPEEDS[Number(this.speed.value)], "key")} per second`);
    this.speed.setAttribute("aria-valuetext", this.speedText.textContent);
  }

  toggle() {
    if (this.animation !== null) this.stop();
    else this.play();
  }

  play() {
    if (this.position >= this.film.length) this.position = 0;
    let last = performance.now();
    let pending = 0;
    const tick = (now) => {
      pending += (now - last) / 1000 * SPEEDS[Number(this.speed.value)];
      last = now;
      // The first frame can have begun before `last`, so this can be negative.
      const keys = Math.max(0, Math.floor(pending));
      pending -= keys;
      if (keys > 0) this.move(this.position + keys);
      if (this.position >= this.film.length) this.stop();
      else this.animation = requestAnimationFrame(tick);
    };
    this.animation = requestAnimationFrame(tick);
    this.showPlaying(true);
  }

  stop() {
    if (this.animation !== null) cancelAnimationFrame(this.animation);
    this.animation = null;
    this.showPlaying(false);
    this.announceState();
  }

  showPlaying(isPlaying) {
    setIcon(this.playButton, isPlaying ? "Pause" : "Play", isPlaying ? "pause" : "play");
  }

  /** Stops playback and moves to a position. */
  seek(keys) {
    if (this.animation !== null) this.stop();
    this.move(keys);
    this.announceState();
  }

  move(keys) {
    this.position = Math.max(0, Math.min(this.film.length, keys));
    this.draw();
  }

  step(by) {
    this.seek(this.position + by);
  }

  stepPiece(by) {
    const { film } = this;
    const index = film.turnAt(this.position);
    const isInside = this.position > film.first[index];
    const next = by > 0 ? index + 1 : isInside ? index : index - 1;
    this.seek(next < film.turns.length ? film.first[Math.max(0, next)] : film.length);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const { target } = event;
    const isIn = (selector) => target.closest?.(selector);
    // Buttons handle the space bar, and sliders handle the arrow keys.
    if (isIn("input:not([type=range]), select, textarea")) return;
    if (isIn("button, a, summary") && event.key === " ") return;
    if (isIn("input") && event.key !== " ") return;
    const work = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      PageUp: () => this.stepPiece(-1),
      PageDown: () => this.stepPiece(1),
      Home: () => this.seek(0),
      End: () => this.seek(this.film.length),
    }[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  }

  paint() {
    const { film } = this;
    const frame = film.frame(this.position);
    const { turn } = frame;
    draw(this.canvas, {
      cells: frame.cells, width: film.width, above: film.above, falling: frame.falling, piece: valueOf(turn.piece),
    });
    if (this.scrub.value !== String(this.position)) this.scrub.value = this.position;
    this.scrub.setAttribute("aria-valuetext", `piece ${turn.number}, key ${this.position} of ${film.length}`);
    setText(this.piece, frame.isOver ? `${turn.piece}, game over` : turn.piece);
    setText(this.number, `${number(turn.number)} of ${number(film.pieces)}`);
    setText(this.score, `${number(frame.score)} of ${number(film.score)}`);
    setText(this.keyCount, `${number(this.position)} of ${number(film.length)}`);
    this.paintKeys(frame);
  }

  paintKeys({ turn, pressed, isOver }) {
    const done = isOver ? turn.keys.length : pressed;
    const shown = [...turn.keys].map((key, index) => h("span", {
      className: index < done ? "done" : index === done ? "next" : "", title: NAMES[key],
    }, ARROWS[key]));
    this.keys.replaceChildren(...shown);
  }

  /** Announces the state of the game to screen readers, except during playback. */
  announceState() {
    if (this.animation !== null) return;
    const frame = this.film.frame(this.position);
    const text = frame.isOver
      ? `The game is over with ${count(frame.score, "line")} after ${count(this.film.pieces, "piece")}`
      : `Piece ${frame.turn.number}, ${frame.turn.piece}, ${count(frame.score, "line")}, key ${frame.pressed} of ${frame.turn.keys.length}`;
    this.canvas.setAttribute("aria-label", text);
    announce(text);
  }

  save(kind) {
    const { film, name } = this;
    if (kind === "txt") download(`${name}.txt`, "text/plain", `${film.base2048}\n`);
    else if (kind === "keys") download(`${name}-keys.txt`, "text/plain", `${film.letters()}\n`);
    else {
      const { enemy, width, height, above, score, pieces, keys, over, base2048, turns, end } = film;
      const json = { enemy, width, height, above, score, pieces, keys, over, base2048, turns, end };
      download(`${name}.json`, "application/json", JSON.stringify(json));
    }
  }

  close() {
    if (this.animation !== null) cancelAnimationFrame(this.animation);
    document.removeEventListener("keydown", this.onKey);
    removeEventListener("resize", this.draw);
    removeEventListener("theme", this.draw);
  }
}
