// Light, dark, or as the system has it. Loaded before anything is drawn, so that nothing flashes.
(() => {
  const KEY = "hatebeam-theme";
  const NAMES = { auto: "Auto", light: "Light", dark: "Dark" };
  const TEXTS = {
    auto: "Colours: as the system has them",
    light: "Colours: light",
    dark: "Colours: dark",
  };
  let theme = "auto";
  try {
    const kept = localStorage.getItem(KEY);
    if (kept in NAMES) theme = kept;
  } catch {
    // Without storage it is as the system has it.
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
      // It holds for this page alone then.
    }
    tell();
  }

  /** What is drawn rather than styled has to be drawn again. */
  function tell() {
    show();
    dispatchEvent(new Event("theme"));
  }

  show();
  addEventListener("DOMContentLoaded", () => {
    show();
    document.getElementById("theme").addEventListener("click", change);
  });
  system.addEventListener("change", tell);
})();
