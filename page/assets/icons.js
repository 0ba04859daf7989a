// Icons for buttons. They are SVG images, because not all fonts contain these symbols.

const SVG = "http://www.w3.org/2000/svg";

/** SVG paths in a square of 16 × 16 units. */
const PATHS = {
  play: "M4 2.5v11l9.5-5.5z",
  pause: "M3.5 2.5h3.2v11H3.5zM9.3 2.5h3.2v11H9.3z",
  first: "M2.5 2.5h2v11h-2zM13.5 2.5v11L5 8z",
  last: "M11.5 2.5h2v11h-2zM2.5 2.5v11L11 8z",
  back: "M8 3v10L1 8zM15 3v10L8 8z",
  forward: "M8 3v10l7-5zM1 3v10l7-5z",
  before: "M11 2.5v11L4 8z",
  next: "M5 2.5v11L12 8z",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** Creates a button with an icon. The label is both the tooltip and the text for screen readers. */
export function iconButton(label, name, work, className = "") {
  const button = document.createElement("button");
  button.type = "button";
  button.className = `icon-button ${className}`;
  setIcon(button, label, name);
  button.addEventListener("click", work);
  return button;
}

/** Changes the icon and the label of a button. */
export function setIcon(button, label, name) {
  button.title = label;
  button.setAttribute("aria-label", label);
  button.replaceChildren(icon(name));
}
