// Questions before something is done that cannot be taken back.

import { h, toast } from "./dom.js";

/**
 * Asks, and does `work` if the answer is yes. The dialog stays while the work is under way, and says what went
 * wrong if something does. True if it was done.
 */
export function ask({ title, text, yes, danger = false, work }) {
  return new Promise((resolve) => {
    let done = false;
    const problem = h("p", { className: "problem", role: "alert", hidden: true });
    const confirm = h("button", { type: "submit", className: danger ? "danger" : "main" }, yes);
    const keep = h("button", { type: "button", onclick: () => dialog.close() }, "Not now");
    const form = h("form", { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      ...[text].flat().map((part) => typeof part === "string" ? h("p", {}, part) : part),
      problem,
      h("div", { className: "buttons" }, keep, confirm));
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      confirm.disabled = true;
      problem.hidden = true;
      try {
        const said = await work();
        done = true;
        dialog.close();
        if (typeof said === "string") toast(said);
      } catch (error) {
        problem.textContent = error.message;
        problem.hidden = false;
        confirm.disabled = false;
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(done);
    });
    document.body.append(dialog);
    dialog.showModal();
    (form.querySelector("input") ?? keep).focus();
  });
}
