// Loads the engine and selects the tab that the URL's fragment names.

import { AgentsTab } from "./agents.js";
import { ClearsTab } from "./clears.js";
import { h } from "./dom.js";
import { Engine } from "./engine.js";
import { HatetrisTab } from "./hatetris.js";

const TABS = {
  hatetris: ["HATETRIS", HatetrisTab],
  clears: ["Perfect clears", ClearsTab],
  agents: ["Agents", AgentsTab],
};

const main = document.getElementById("main");
/** The tabs that have been opened, by name. A tab keeps its state while another tab is shown. */
const opened = new Map();
let current = null;

function select({ focus = true } = {}) {
  const wanted = location.hash.slice(1);
  const name = Object.hasOwn(TABS, wanted) ? wanted : "hatetris";
  const [title, Tab] = TABS[name];
  if (!opened.has(name)) {
    const section = h("section", { className: "tab", "aria-label": title });
    main.append(section);
    opened.set(name, { section, tab: new Tab(section, engine) });
  }
  if (current !== null && current !== name) opened.get(current).tab.leave();
  current = name;
  for (const [other, { section }] of opened) section.hidden = other !== name;
  document.title = `${title} – hatebeam`;
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.getAttribute("href") === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  opened.get(name).tab.enter();
  if (focus) main.focus({ preventScroll: true });
}

let engine;
try {
  engine = await Engine.load();
  document.getElementById("loading").remove();
  addEventListener("hashchange", () => select());
  document.querySelector(".skip").addEventListener("click", (event) => {
    // The default action would change the URL's fragment, which selects the tab.
    event.preventDefault();
    main.focus();
  });
  select({ focus: false });
} catch (error) {
  document.getElementById("loading").textContent = `The games cannot be loaded: ${error.message}`;
  throw error;
}
