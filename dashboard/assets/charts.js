// Plots of values against depth. The pointer marks the same depth in all plots.

import { css, h, setText } from "./dom.js";

const HEIGHT = 190;
const SYNC = "depth";
/** Name of the scale whose axis is on the right. */
export const RIGHT = "right";

/**
 * A plot. Each element of `lines` is { label, ink, dash, scale }, in which `ink` names a colour in the style sheet.
 * `set` replaces the depths and the values of each line. A click calls `onPick` with the depth at the pointer.
 */
export class Chart {
  constructor({ title, lines, format, onPick }) {
    this.lines = lines;
    this.format = format;
    this.plot = null;
    this.data = null;
    this.onPick = onPick;
    this.frame = h("div", { className: "plot" });
    this.legend = h("ul", { className: "legend" });
    this.values = lines.map((line) => {
      const value = h("b");
      const mark = h("i", { className: `mark ${line.ink}` });
      this.legend.append(h("li", {}, mark, `${line.label} `, value));
      return value;
    });
    this.title = title;
    this.frame.setAttribute("role", "img");
    this.frame.setAttribute("aria-label", title);
    this.element = h("figure", { className: "chart" }, h("figcaption", {}, h("h3", {}, title), this.legend), this.frame);
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(this.frame);
    this.repaint = () => this.plot?.redraw(false);
    addEventListener("theme", this.repaint);
  }

  set(depths, ...series) {
    this.data = [depths, ...series];
    if (depths.length === 0) return;
    if (this.plot) this.plot.setData(this.data);
    else this.make();
    this.showLast();
    this.describe();
  }

  make() {
    const width = this.frame.clientWidth;
    if (width === 0) return;
    const axis = (more) => ({
      stroke: () => css("--muted"),
      grid: { stroke: () => css("--grid"), width: 1 },
      ticks: { stroke: () => css("--grid"), width: 1, size: 4 },
      font: "11px system-ui, sans-serif",
      ...more,
    });
    const side = (more) => axis({
      size: 58, values: (_, values) => values.map((value) => value === null ? "" : this.format(value)), ...more,
    });
    const options = {
      width,
      height: HEIGHT,
      padding: [8, 20, 0, 0],
      legend: { show: false },
      cursor: {
        sync: { key: SYNC, setSeries: false },
        points: { size: 6 },
        drag: { x: true, y: false },
        bind: { dblclick: (plot, target, handler) => handler },
      },
      scales: { x: { time: false } },
      axes: [
        axis({ size: 28 }),
        side({}),
        ...(this.lines.some((line) => line.scale === RIGHT) ? [side({ scale: RIGHT, side: 1, grid: { show: false } })] : []),
      ],
      series: [
        { label: "depth" },
        ...this.lines.map((line) => ({
          label: line.label,
          scale: line.scale ?? "y",
          stroke: () => css(`--${line.ink}`),
          width: 1.5,
          dash: line.dash,
          points: { show: false },
          spanGaps: false,
        })),
      ],
      hooks: {
        setCursor: [(plot) => this.showValues(plot.cursor.idx)],
        ready: [(plot) => {
          plot.over.addEventListener("click", () => {
            const index = plot.cursor.idx;
            if (index !== null && index !== undefined) this.onPick?.(this.data[0][index]);
          });
        }],
      },
    };
    this.plot = new uPlot(options, this.data, this.frame);
  }

  fit() {
    const width = this.frame.clientWidth;
    if (width === 0 || !this.data) return;
    if (!this.plot) this.make();
    else if (this.plot.width !== width) this.plot.setSize({ width, height: HEIGHT });
  }

  /** Updates the legend to the values at an index, or to the last values if the index is null. */
  showValues(index) {
    if (!this.data) return;
    const shown = index ?? this.data[0].length - 1;
    this.values.forEach((value, line) => {
      const number = this.data[line + 1][shown];
      setText(value, number === null || number === undefined ? "–" : this.format(number));
    });
  }

  showLast() {
    if (this.plot?.cursor.idx === null || this.plot?.cursor.idx === undefined) this.showValues(null);
  }

  describe() {
    const [depths, ...series] = this.data;
    const parts = this.lines.map((line, index) => {
      const last = series[index].at(-1);
      return `${line.label} ${last === null || last === undefined ? "unknown" : this.format(last)}`;
    });
    this.frame.setAttribute("aria-label",
      `${this.title} from depth ${depths[0]} to ${depths.at(-1)}; last values: ${parts.join(", ")}. The table of depths shows all values.`);
  }

  close() {
    this.resized.disconnect();
    removeEventListener("theme", this.repaint);
    this.plot?.destroy();
  }
}
