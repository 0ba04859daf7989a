// Shows the page named by the URL's fragment, or the sign-in page.

import { closeDialog } from "./dialog.js";
import { h, show, toast } from "./dom.js";
import { gamePage } from "./game.js";
import { call, whenSignedOut } from "./live.js";
import { runPage } from "./run.js";
import { runsPage } from "./runs.js";
import { submitPage } from "./submit.js";
import { workersPage } from "./workers.js";

const main = document.getElementById("main");
const signOut = document.getElementById("sign-out");
let leave = () => {};
let isSignedIn = false;
/** Digest of each neural network in the program, by name. */
let networks = {};

/** Returns the title of the page for a fragment, and a function that shows the page. */
function pageOf(hash) {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decode);
  const [first, name, view, depth = "0"] = parts;
  if (first === "") return ["Runs", () => runsPage(main)];
  if (first === "workers" && parts.length === 1) return ["Workers", () => workersPage(main)];
  if (first === "submit" && parts.length === 1) return ["New run", () => submitPage(main, networks)];
  if (first === "run" && name && parts.length === 2) return [name, () => runPage(main, name)];
  if (first === "run" && name && view === "game" && /^\d{1,9}$/.test(depth)) {
    return [`Game – ${name}`, () => gamePage(main, name, Number(depth))];
  }
  return ["Page not found", () => {
    main.replaceChildren(h("h1", {}, "Page not found"), h("p", {}, h("a", { href: "#/" }, "All runs")));
    return () => {};
  }];
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function route({ focus = true } = {}) {
  if (!isSignedIn) return;
  // The dialog belongs to the page that is left.
  closeDialog();
  leave();
  const [title, make] = pageOf(location.hash);
  document.title = `${title} – hatebeam`;
  for (const link of document.querySelectorAll("#nav a")) {
    const isHere = link.getAttribute("href") === (location.hash || "#/");
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
  leave = make();
  if (focus) main.focus({ preventScroll: true });
}

function signInPage() {
  closeDialog();
  leave();
  leave = () => {};
  isSignedIn = false;
  show(signOut, false);
  document.title = "Sign in – hatebeam";
  const problem = h("p", { className: "problem", role: "alert", hidden: true });
  const token = h("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
  const button = h("button", { type: "submit", className: "main" }, "Sign in");
  const form = h("form", {
    className: "sign-in",
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      show(problem, false);
      try {
        await call("login", { token: token.value });
        await start();
      } catch (error) {
        problem.textContent = error.message;
        show(problem, true);
        token.select();
      }
      button.disabled = false;
    },
  },
  h("h1", {}, "Sign in"),
  h("p", {}, "Enter the coordinator's token: the contents of its token file, or the value of HATEBEAM_TOKEN."),
  h("label", { for: "token" }, "Token"), token, problem, button);
  main.replaceChildren(form);
  token.focus();
}

async function start() {
  let session = null;
  try {
    session = await call("session");
  } catch {
    // The coordinator is unreachable. The page that `route` shows reports this and reconnects.
  }
  if (session && !session.signed_in) {
    signInPage();
    return;
  }
  isSignedIn = true;
  networks = session?.networks ?? {};
  show(signOut, Boolean(session?.token_required));
  route({ focus: false });
}

signOut.addEventListener("click", async () => {
  try {
    await call("logout", {});
  } catch (error) {
    toast(error.message, "bad");
    return;
  }
  await start();
});
whenSignedOut(() => {
  if (isSignedIn) signInPage();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  // The default action would change the URL's fragment, which selects the page.
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => route());
addEventListener("reload", () => route({ focus: false }));
start();
