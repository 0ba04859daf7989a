// An editor for the lowest rows of a field. Each cell is a button. A click or a drag fills or empties cells, and the
// arrow keys move the focus.

import { h, setChildren } from "./dom.js";

const WIDTH = 10;

export class FieldEditor {
  constructor(onChange) {
    this.onChange = onChange;
    this.element = h("div", { className: "grid", role: "group", "aria-label": "Field, the last row is the floor" });
    /** Rows of cells from the top. True means filled. */
    this.cells = [];
    /** Value that the current drag gives to cells, or null if there is no drag. */
    this.painting = null;
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("pointerdown", (event) => this.paint(event, true));
    this.element.addEventListener("pointermove", (event) => this.paint(event, false));
    addEventListener("pointerup", () => {
      this.painting = null;
    });
  }

  get rows() {
    return this.cells.map((row) => row.map((isFilled) => (isFilled ? "X" : "_")).join(""));
  }

  /** Sets the rows, given as strings of X (filled) and _ (empty). */
  set(rows) {
    this.cells = rows.map((row) => [...row].map((cell) => cell === "X"));
    this.buttons = this.cells.map((row, y) => row.map((_, x) => h("button", {
      type: "button", className: "cell", tabIndex: y === 0 && x === 0 ? 0 : -1,
      // `detail` is 0 if the click comes from the keyboard or a screen reader. Pointers are handled in `paint`.
      onclick: (event) => event.detail === 0 && this.fill(x, y, !this.cells[y][x]),
    })));
    setChildren(this.element, this.buttons.flat());
    this.show();
  }

  show(letters = new Map()) {
    this.buttons.forEach((row, y) => row.forEach((button, x) => {
      const letter = letters.get(`${x} ${y}`);
      const isFilled = this.cells[y][x];
      button.className = `cell${isFilled ? " filled" : ""}${letter ? ` piece-${letter.toLowerCase()}` : ""}`;
      button.setAttribute("aria-pressed", String(isFilled));
      button.setAttribute("aria-label", `Column ${x + 1}, row ${this.cells.length - y}${letter ? `, ${letter}` : ""}`);
      button.textContent = letter ?? "";
    }));
  }

  /** Shows a placement, or no placement if `move` is null. Cells are column + 10 × row, with row 0 at the floor. */
  mark(move) {
    const cells = move === null ? [] : move.cells;
    this.show(new Map(cells.map((cell) => [`${cell % WIDTH} ${this.cells.length - 1 - Math.floor(cell / WIDTH)}`, move.piece])));
  }

  /** Shows a solution, given as rows of piece letters. */
  picture(rows) {
    const letters = new Map();
    rows.forEach((row, y) => [...row].forEach((letter, x) => {
      if (letter !== "X" && letter !== "_") letters.set(`${x} ${y}`, letter);
    }));
    this.show(letters);
  }

  fill(x, y, isFilled) {
    if (this.cells[y][x] === isFilled) return;
    this.cells[y][x] = isFilled;
    this.show();
    this.onChange();
  }

  paint(event, isStart) {
    if (!isStart && this.painting === null) return;
    const button = document.elementFromPoint(event.clientX, event.clientY);
    const y = this.buttons.findIndex((row) => row.includes(button));
    if (y < 0) return;
    const x = this.buttons[y].indexOf(button);
    if (isStart) {
      this.painting = !this.cells[y][x];
      // By default, the first cell of a touch receives all events of the touch.
      if (button.hasPointerCapture(event.pointerId)) button.releasePointerCapture(event.pointerId);
    }
    this.fill(x, y, this.painting);
  }

  key(event) {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    if (dx === 0 && dy === 0) return;
    const y = this.buttons.findIndex((row) => row.includes(event.target));
    const x = this.buttons[y].indexOf(event.target);
    const next = this.buttons[y + dy]?.[x + dx];
    event.preventDefault();
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}
