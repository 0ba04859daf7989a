// Making elements, and telling those who listen rather than look.

/** An element: properties, attributes (with a dash, or `role`, `for` …), listeners (`onclick`), children. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "list" && name !== "form") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  fill(element, ...children);
  return element;
}

/** Puts children there in place of those that are; what is null, undefined or false is none. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

/** Puts text there only if it is another: a page that changes nothing is not drawn again. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Shows or hides. */
export function show(element, is) {
  if (element.hidden === is) element.hidden = !is;
}

let lastSaid = 0;

/** Tells screen readers something; key figures that change every second are told now and then. */
export function say(text, { seldom = false } = {}) {
  const now = Date.now();
  if (seldom && now - lastSaid < 20_000) return;
  lastSaid = now;
  document.getElementById("said").textContent = text;
}

/** A line at the edge of the window that goes by itself. */
export function toast(text, kind = "fine") {
  const line = h("p", { className: `toast ${kind}` }, text);
  document.getElementById("toasts").append(line);
  setTimeout(() => line.remove(), kind === "bad" ? 12_000 : 5_000);
}

/** Has a function called once for any number of calls in one frame. */
export function oncePerFrame(work) {
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      work();
    });
  };
}

/** Copies text; where there is no clipboard (plain HTTP from another machine), by selecting it. */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { className: "unseen", value: text });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (!done) {
      toast(`${what} cannot be copied here; download it`, "bad");
      return;
    }
  }
  toast(`${what} copied`);
}

/** Gives the browser a file to keep. */
export function download(name, kind, text) {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** A value of the style sheet. */
export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
