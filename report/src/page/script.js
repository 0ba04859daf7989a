"use strict";
// Shows the values of a plot at the position under the pointer.
for (const figure of document.querySelectorAll(".plots .card")) {
  const svg = figure.querySelector("svg"), out = figure.querySelector("output"), hair = svg.querySelector(".hair");
  // The lines of a plot can have different positions: a generation can lack a value, and a line can be empty.
  const lines = [...svg.querySelectorAll(".line")].map(line => {
    const pairs = line.dataset.values.split(",").filter(pair => pair).map(pair => pair.split(":"));
    return { name: line.dataset.name, values: new Map(pairs.map(([position, value]) => [+position, value])) };
  });
  const positions = lines.flatMap(line => [...line.values.keys()]);
  const low = +figure.dataset.low, high = +figure.dataset.high;
  // Left and right ends of the horizontal axis. The coordinates in this file follow the constants in plot.rs.
  const left = 58, right = 448;
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * 460;
    const wanted = low + (x - left) / (right - left) * (high - low);
    const nearer = (best, position) => Math.abs(position - wanted) < Math.abs(best - wanted) ? position : best;
    const nearest = positions.reduce(nearer);
    const at = left + (nearest - low) / (high - low) * (right - left);
    hair.setAttribute("d", `M${at} 14V226`);
    const many = lines.length > 1;
    const text = line => (many ? line.name + " " : "") + (line.values.get(nearest) ?? "–");
    out.textContent = `${figure.dataset.axis} ${nearest}: ` + lines.map(text).join(", ");
  });
  svg.addEventListener("pointerleave", () => { hair.setAttribute("d", ""); out.textContent = ""; });
}
const copy = document.getElementById("copy");
if (copy) copy.addEventListener("click", async () => {
  const replay = document.getElementById("replay");
  try {
    await navigator.clipboard.writeText(replay.textContent);
    copy.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(replay);
    copy.textContent = "Selected: press Ctrl+C";
  }
});
const player = document.getElementById("player");
if (player) {
  const wells = player.dataset.wells.split(" "), columns = +player.dataset.columns, rows = +player.dataset.rows;
  const path = player.querySelector("path"), out = player.querySelector("output");
  const slider = player.querySelector("input"), play = player.querySelector("[data-go=play]");
  const digits = wells[0].length / rows;
  const bits = (well, y) => parseInt(well.slice(y * digits, (y + 1) * digits), 16);
  const filled = well => {
    let count = 0;
    for (let y = 0; y < rows; y++) for (let row = bits(well, y); row; row &= row - 1) count++;
    return count;
  };
  const before = filled(wells[0]);
  let timer = 0;
  const draw = () => {
    const index = +slider.value, well = wells[index];
    let d = "";
    for (let y = 0; y < rows; y++) {
      const row = bits(well, y);
      for (let x = 0; x < columns; x++) if (row >> x & 1) d += `M${x + 0.04} ${y + 0.04}h.92v.92h-.92z`;
    }
    path.setAttribute("d", d);
    out.textContent = `${index} of ${wells.length - 1} pieces, ${(before + 4 * index - filled(well)) / columns} lines`;
  };
  const stop = () => { clearInterval(timer); timer = 0; play.textContent = "Play"; };
  const go = by => {
    slider.value = +slider.value + by;
    if (+slider.value === wells.length - 1) stop();
    draw();
  };
  player.addEventListener("click", event => {
    const action = event.target.dataset.go;
    if (action === "play") {
      if (timer) return stop();
      if (+slider.value === wells.length - 1) slider.value = 0;
      play.textContent = "Pause";
      timer = setInterval(go, 150, 1);
    } else if (action) { stop(); go(+action); }
  });
  slider.addEventListener("input", draw);
  player.hidden = false;
  draw();
}
