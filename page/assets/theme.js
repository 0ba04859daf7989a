// The colour theme: light, dark, or the system's theme. The browser runs this script before it draws the page, so the
// page never appears in the wrong colours.
(() => {
  const KEY = "hatebeam-theme";
  const NAMES = { auto: "Auto", light: "Light", dark: "Dark" };
  const TEXTS = {
    auto: "Colours: system",
    light: "Colours: light",
    dark: "Colours: dark",
  };
  let theme = "auto";
  try {
    const saved = localStorage.getItem(KEY);
    if (saved !== null && Object.hasOwn(NAMES, saved)) theme = saved;
  } catch {
    // Storage is unavailable: use the system's theme.
  }

  const system = matchMedia("(prefers-color-scheme: dark)");

  function show() {
    document.documentElement.dataset.theme = theme !== "auto" ? theme : system.matches ? "dark" : "light";
    const button = document.getElementById("theme");
    if (!button) return;
    button.textContent = NAMES[theme];
    button.setAttribute("aria-label", TEXTS[theme]);
  }

  function change() {
    const order = Object.keys(NAMES);
    theme = order[(order.indexOf(theme) + 1) % order.length];
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // Storage is unavailable: the choice lasts until the page is reloaded.
    }
    apply();
  }

  /** Applies the theme and dispatches an event, because plots and wells on canvases must be drawn again. */
  function apply() {
    show();
    dispatchEvent(new Event("theme"));
  }

  show();
  addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme").addEventListener("click", change);
  });
  system.addEventListener("change", apply);
})();
