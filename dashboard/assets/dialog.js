// Confirmation dialogs.

import { h, toast } from "./dom.js";

/**
 * Asks for confirmation, then calls `work`. The dialog stays open until `work` succeeds, and shows an error if `work`
 * fails. Resolves to true after `work` has succeeded, or to false if the user closes the dialog.
 */
export function confirmAction({ title, text, label, danger = false, work }) {
  return new Promise((resolve) => {
    let isDone = false;
    const problem = h("p", { className: "problem", role: "alert", hidden: true });
    const confirm = h("button", { type: "submit", className: danger ? "danger" : "main" }, label);
    const close = h("button", { type: "button", onclick: () => dialog.close() }, "Not now");
    const form = h("form", { method: "dialog" },
      h("h2", { id: "dialog-title" }, title),
      ...[text].flat().map((part) => typeof part === "string" ? h("p", {}, part) : part),
      problem,
      h("div", { className: "buttons" }, close, confirm));
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, form);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      confirm.disabled = true;
      problem.hidden = true;
      try {
        const message = await work();
        isDone = true;
        dialog.close();
        if (typeof message === "string") toast(message);
      } catch (error) {
        problem.textContent = error.message;
        problem.hidden = false;
        confirm.disabled = false;
      }
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(isDone);
    });
    document.body.append(dialog);
    dialog.showModal();
    (form.querySelector("input") ?? close).focus();
  });
}
