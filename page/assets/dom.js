// Helper functions for elements, announcements, downloads and the clipboard.

/**
 * Creates an element. `props` contains properties, attributes (names with a dash, and names such as `role` or `for`)
 * and listeners (names such as `onclick`).
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes("-") && name !== "list" && name !== "form") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  setChildren(element, ...children);
  return element;
}

/** Replaces the children of an element. Ignores null, undefined and false. */
export function setChildren(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
}

/** Sets the text of an element. Does nothing if the element already has this text, to avoid a repaint. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function show(element, isVisible) {
  if (element.hidden === isVisible) element.hidden = !isVisible;
}

let lastAnnouncement = 0;

/** Announces text to screen readers. With `seldom`, skips the text if the last announcement is less than 20 seconds old. */
export function announce(text, { seldom = false } = {}) {
  const now = Date.now();
  if (seldom && now - lastAnnouncement < 20_000) return;
  lastAnnouncement = now;
  document.getElementById("announcer").textContent = text;
}

/** Shows a message at the edge of the window for a few seconds. */
export function toast(text, kind = "fine") {
  const line = h("p", { className: `toast ${kind}` }, text);
  document.getElementById("toasts").append(line);
  setTimeout(() => line.remove(), kind === "bad" ? 12_000 : 5_000);
}

/** Returns a function that calls `work` at most once per frame. */
export function oncePerFrame(work) {
  let isScheduled = false;
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      work();
    });
  };
}

/**
 * Copies text to the clipboard. Over plain HTTP from another machine, browsers provide no clipboard API. In that
 * case, this function copies the text from a temporary text area.
 */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", { className: "unseen", value: text });
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    if (!isCopied) {
      toast(`${what} cannot be copied in this browser: download it`, "bad");
      return;
    }
  }
  toast(`${what} copied`);
}

/** Offers text as a file to download. */
export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

/** Returns the value of a custom property in the style sheet. */
export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
