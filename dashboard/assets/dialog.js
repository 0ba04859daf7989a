// Confirmation dialogs.

import { h, toast } from "./dom.js";

/**
 * Asks for confirmation, then calls `work`. The user cannot close the dialog while `work` runs. The dialog stays open
 * until `work` succeeds, and shows an error if `work` fails. Resolves to true after `work` has succeeded, or to false if
 * the user or `closeDialog` closes the dialog.
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
    const setBusy = (isBusy) => {
      confirm.disabled = isBusy;
      close.disabled = isBusy;
      // Without this property, a second Escape closes the dialog although the event `cancel` is prevented.
      dialog.closedBy = isBusy ? "none" : "closerequest";
    };
    // For browsers without the property `closedBy`.
    dialog.addEventListener("cancel", (event) => {
      if (confirm.disabled) event.preventDefault();
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      setBusy(true);
      problem.hidden = true;
      try {
        const message = await work();
        isDone = true;
        dialog.close();
        if (typeof message === "string") toast(message);
      } catch (error) {
        problem.textContent = error.message;
        problem.hidden = false;
        setBusy(false);
        if (!dialog.open) toast(error.message, "bad");
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

/** Closes the open dialog, if there is one. If its work has begun, the work continues. */
export function closeDialog() {
  document.querySelector("dialog[open]")?.close();
}
