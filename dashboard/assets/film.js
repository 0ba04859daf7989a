// A film: a game in JSON with all keys and wells. Computes the state of the game after any number of keys.

import { rowsOf, valueOf } from "./well.js";

export class Film {
  constructor(film) {
    Object.assign(this, film);
    this.rows = film.above + film.height;
    /** For each piece, the number of keys pressed before it. */
    this.first = [];
    let keys = 0;
    for (const turn of film.turns) {
      this.first.push(keys);
      keys += turn.keys.length;
    }
    this.length = keys;
    this.boards = this.makeBoards();
  }

  /** Returns the board before each piece, and the final board. The value of a filled cell identifies its piece. */
  makeBoards() {
    const { width, above, turns } = this;
    let board = new Uint8Array(this.rows * width);
    // The cells of the starting well have the value 8, because their pieces are unknown.
    rowsOf(turns[0].well, width)?.forEach((row, y) => {
      for (let x = 0; x < width; x += 1) if (row >> x & 1) board[(y + above) * width + x] = 8;
    });
    const boards = [board];
    for (const turn of turns) {
      const isLocked = turn.path.length === turn.keys.length;
      if (!isLocked) break;
      board = board.slice();
      const rest = turn.path.at(-1);
      for (const [x, y] of rest) board[y * width + x] = valueOf(turn.piece);
      if (turn.lines > 0) this.removeFullRows(board);
      boards.push(board);
    }
    return boards;
  }

  removeFullRows(board) {
    const { width } = this;
    for (let y = 0; y < this.rows; y += 1) {
      const row = board.subarray(y * width, (y + 1) * width);
      if (row.every((cell) => cell !== 0)) {
        board.copyWithin(width, 0, y * width);
        board.fill(0, 0, width);
      }
    }
  }

  /** Returns the index of the current turn after `keys` keys. */
  turnAt(keys) {
    let [low, high] = [0, this.turns.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.first[middle] <= keys) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Returns the state of the game after `keys` keys. */
  frame(keys) {
    const index = this.turnAt(keys);
    const turn = this.turns[index];
    const pressed = keys - this.first[index];
    if (this.over && keys >= this.length) {
      return { turn, index, pressed, score: this.score, cells: this.boards.at(-1), falling: [], isOver: true };
    }
    const falling = turn.path[Math.min(pressed, turn.path.length - 1)];
    return { turn, index, pressed, score: turn.score, cells: this.boards[index], falling, isOver: false };
  }

  /** Returns the letters of all keys. */
  letters() {
    return this.turns.map((turn) => turn.keys).join("");
  }
}
