// Parses, measures and draws wells. Row 0 is the topmost row.

import { css } from "./dom.js";

const PIECES = "SZOILJT";
/** Maximum height of a well as a fraction of the window's height. */
const MAX_HEIGHT = 0.66;
/** Maximum height in a narrow window, in which the controls are below the well. */
const MAX_HEIGHT_NARROW = 0.5;
/** Width in pixels below which a window is narrow. */
const NARROW = 768;

/** Parses the rows of a well in hex. The lowest bit of a row is the leftmost column. Returns null if the text is invalid. */
export function rowsOf(hex, width) {
  const digits = Math.ceil(width / 4);
  if (!hex || hex.length % digits !== 0 || /[^0-9a-f]/i.test(hex)) return null;
  const rows = [];
  for (let at = 0; at < hex.length; at += digits) rows.push(parseInt(hex.slice(at, at + digits), 16));
  return rows;
}

/** Returns the number of rows up to the topmost filled cell. */
export function stackHeight(rows) {
  const top = rows.findIndex((row) => row !== 0);
  return top < 0 ? 0 : rows.length - top;
}

/**
 * Returns the height of the surface: the number of rows below the lowest empty cell that is connected to the top
 * through other empty cells.
 */
export function surfaceHeight(rows, width) {
  const full = 2 ** width - 1;
  const open = new Array(rows.length).fill(0);
  // Fill downwards from the top, then spread in all directions until nothing changes.
  let above = full;
  let lowest = rows.length;
  for (let y = 0; y < rows.length; y += 1) {
    const free = full & ~rows[y];
    open[y] = spread(above & free, free);
    above = open[y];
  }
  for (let changed = true; changed;) {
    changed = false;
    for (let y = rows.length - 1; y >= 0; y -= 1) {
      const free = full & ~rows[y];
      const beside = (y > 0 ? open[y - 1] : full) | (open[y + 1] ?? 0);
      const reached = spread(open[y] | (beside & free), free);
      if (reached !== open[y]) {
        open[y] = reached;
        changed = true;
      }
    }
  }
  open.forEach((row, y) => {
    if (row !== 0) lowest = Math.min(lowest, rows.length - 1 - y);
  });
  return lowest;
}

/** Returns the free cells of a row that are connected to `cells` within the row. */
function spread(cells, free) {
  for (;;) {
    const more = (cells | cells << 1 | cells >> 1) & free;
    if (more === cells) return cells;
    cells = more;
  }
}

/** Converts rows to a list of cells, row by row from the top. 0 is an empty cell, 8 a cell filled by an unknown piece. */
export function cellsOf(rows, width) {
  const cells = new Uint8Array(rows.length * width);
  rows.forEach((row, y) => {
    for (let x = 0; x < width; x += 1) if (row >> x & 1) cells[y * width + x] = 8;
  });
  return cells;
}

/** Returns the cell value for a piece's letter. */
export function valueOf(piece) {
  return PIECES.indexOf(piece) + 1;
}

function colour(value) {
  return css(value === 8 ? "--cell" : `--piece-${PIECES[value - 1].toLowerCase()}`);
}

/**
 * Draws cells on a canvas. The first `above` rows are above the bar. `falling` contains the cells of the falling
 * piece, as [column, row], and `piece` is their value. `ghost` contains the cells of a possible placement, which are
 * drawn translucent. The size of a cell is a whole number of screen pixels, so that edges are sharp.
 */
export function draw(canvas, { cells, width, above = 0, falling = [], ghost = [], piece = 8 }) {
  const height = cells.length / width;
  const ratio = devicePixelRatio || 1;
  const room = canvas.parentElement.clientWidth || 240;
  const most = Number(canvas.dataset.most ?? 300);
  // Keep the well and its controls visible at the same time.
  const tall = innerHeight * (innerWidth < NARROW ? MAX_HEIGHT_NARROW : MAX_HEIGHT) * ratio / height;
  const size = Math.max(4, Math.floor(Math.min(Math.min(room, most) * ratio / width, tall)));
  const [wide, high] = [size * width + 1, size * height + 1];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${wide / ratio}px`;
    canvas.style.height = `${high / ratio}px`;
  }
  const pen = canvas.getContext("2d");
  pen.fillStyle = css("--well");
  pen.fillRect(0, 0, wide, high);
  if (above > 0) {
    pen.fillStyle = css("--well-above");
    pen.fillRect(0, 0, wide, above * size);
  }
  pen.fillStyle = css("--well-line");
  for (let x = 0; x <= width; x += 1) pen.fillRect(x * size, 0, 1, high);
  for (let y = 0; y <= height; y += 1) pen.fillRect(0, y * size, wide, 1);
  const inks = {};
  const cell = (x, y, value) => {
    pen.fillStyle = inks[value] ??= colour(value);
    pen.fillRect(x * size + 1, y * size + 1, size - 1, size - 1);
    const edge = Math.max(1, Math.round(size / 11));
    pen.fillStyle = "rgba(255, 255, 255, 0.28)";
    pen.fillRect(x * size + 1, y * size + 1, size - 1, edge);
    pen.fillStyle = "rgba(0, 0, 0, 0.22)";
    pen.fillRect(x * size + 1, (y + 1) * size - edge, size - 1, edge);
  };
  cells.forEach((value, at) => {
    if (value !== 0) cell(at % width, Math.floor(at / width), value);
  });
  pen.globalAlpha = 0.35;
  for (const [x, y] of ghost) cell(x, y, piece);
  pen.globalAlpha = 1;
  for (const [x, y] of falling) cell(x, y, piece);
  if (falling.length > 0) outline(pen, falling, size, Math.max(1, Math.round(ratio)));
  if (above > 0) {
    pen.fillStyle = css("--bar");
    pen.fillRect(0, above * size, wide, Math.max(1, Math.round(1.5 * ratio)));
  }
}

/** Outlines the falling piece, so that users can recognize it without seeing its colour. */
function outline(pen, cells, size, thick) {
  pen.fillStyle = css("--ink");
  const has = (x, y) => cells.some(([cx, cy]) => cx === x && cy === y);
  for (const [x, y] of cells) {
    const [left, top] = [x * size, y * size];
    if (!has(x, y - 1)) pen.fillRect(left, top, size + 1, thick);
    if (!has(x, y + 1)) pen.fillRect(left, top + size, size + 1, thick);
    if (!has(x - 1, y)) pen.fillRect(left, top, thick, size + 1);
    if (!has(x + 1, y)) pen.fillRect(left + size, top, thick, size + 1);
  }
}

/** Returns a description of a well for screen readers. */
export function describe(rows, width) {
  const filled = rows.reduce((sum, row) => sum + row.toString(2).replaceAll("0", "").length, 0);
  return `${width} by ${rows.length} cells, ${filled} filled, stack ${stackHeight(rows)} high, ` +
    `surface ${surfaceHeight(rows, width)} high`;
}
