// Talking with the coordinator: calls, and events that go on for as long as a page is shown.

import { show } from "./dom.js";

/** Between two tries to reach a coordinator that is away: from, to, in milliseconds. */
const BACKOFF = [500, 15_000];
/** After so long without a word (it says one every ten seconds) the connection is taken to be gone. */
const SILENCE = 25_000;
/** How long a coordinator may be away before it is said. */
const GRACE = 700;

/** A call that was answered with an error, or not at all (then its status is 0). */
export class CallError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

let onSignedOut = () => {};

/** What to do when the token is wanted. */
export function whenSignedOut(work) {
  onSignedOut = work;
}

/** Calls the interface. With a body it is a POST. */
export async function call(path, body, { signal } = {}) {
  const options = body === undefined ? { signal } : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  };
  let response;
  try {
    response = await fetch(`api/v1/${path}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError(0, "The coordinator cannot be reached.");
  }
  const text = await response.text();
  let answer = null;
  try {
    answer = text === "" ? null : JSON.parse(text);
  } catch {
    throw new CallError(response.status, `An answer that is not understood (${response.status}).`);
  }
  if (response.ok) return answer;
  if (response.status === 401 && path !== "login") onSignedOut();
  throw new CallError(response.status, answer?.error ?? `HTTP ${response.status}`);
}

/** A run's place in the interface. */
export function runPath(run) {
  return `runs/${encodeURIComponent(run)}`;
}

/**
 * Events of one page. `path` is asked for at every (re)connection, so that a page can go on from where it is;
 * `handlers` are called with what the events say.
 */
export class Live {
  constructor(path, handlers) {
    this.path = path;
    this.handlers = handlers;
    this.wait = BACKOFF[0];
    this.awaySince = null;
    this.retryAt = 0;
    this.ended = false;
    this.heard = Date.now();
    this.onVisible = () => this.look();
    document.addEventListener("visibilitychange", this.onVisible);
    addEventListener("online", this.onVisible);
    this.clock = setInterval(() => this.tick(), 500);
    this.open();
  }

  open() {
    this.source?.close();
    this.retryAt = 0;
    this.heard = Date.now();
    const source = new EventSource(`api/v1/${this.path()}`);
    this.source = source;
    source.onopen = () => this.isHere();
    source.onerror = () => this.isAway();
    for (const [name, handler] of Object.entries(this.handlers)) {
      source.addEventListener(name, (event) => {
        this.isHere();
        handler(JSON.parse(event.data));
      });
    }
    source.addEventListener("end", () => this.end());
    source.addEventListener("gone", (event) => {
      this.reason = JSON.parse(event.data);
      this.isAway();
    });
  }

  isHere() {
    this.heard = Date.now();
    this.wait = BACKOFF[0];
    this.awaySince = null;
    this.reason = null;
    this.tell();
  }

  isAway() {
    this.source?.close();
    this.source = null;
    if (this.ended || this.retryAt) return;
    this.awaySince ??= Date.now();
    // Not all at once, when a coordinator comes back.
    this.retryAt = Date.now() + this.wait * (0.75 + Math.random() / 2);
    this.wait = Math.min(this.wait * 2, BACKOFF[1]);
    // It may be for want of the token.
    call("session").then((session) => {
      if (!session.signed_in) onSignedOut();
    }, () => {});
    this.tell();
  }

  /** Nothing more will be said. */
  end() {
    this.ended = true;
    this.source?.close();
    this.source = null;
    this.isHere();
  }

  tick() {
    if (this.ended) return;
    if (document.hidden) return;
    const now = Date.now();
    if (this.retryAt && now >= this.retryAt) this.open();
    else if (this.source && now - this.heard > SILENCE && this.source.readyState !== EventSource.OPEN) this.isAway();
    this.tell();
  }

  /** A page that nobody looks at is told nothing; when it is looked at again it catches up. */
  look() {
    if (this.ended) return;
    if (document.hidden) {
      this.source?.close();
      this.source = null;
    } else {
      this.wait = BACKOFF[0];
      this.open();
    }
  }

  tell() {
    const [away, link] = [document.getElementById("away"), document.getElementById("link")];
    const isAway = this.awaySince !== null && Date.now() - this.awaySince > GRACE;
    show(away, isAway);
    link.className = `link ${isAway ? "bad" : this.ended ? "" : "good"}`;
    const state = isAway ? "away" : this.ended ? "ended" : "live";
    if (link.textContent !== state) link.textContent = state;
    if (!isAway) return;
    const seconds = Math.max(0, Math.ceil((this.retryAt - Date.now()) / 1000));
    const since = new Date(this.awaySince).toLocaleTimeString();
    const text = `${this.reason ?? "The coordinator is away"} since ${since}. What is shown here is how things stood then; ` +
      `a run loses nothing, and goes on when a coordinator is started again. ` +
      (this.retryAt ? `Trying again ${seconds > 0 ? `in ${seconds} s` : "now"}.` : "Trying …");
    if (away.textContent !== text) away.textContent = text;
  }

  close() {
    this.ended = true;
    this.source?.close();
    clearInterval(this.clock);
    document.removeEventListener("visibilitychange", this.onVisible);
    removeEventListener("online", this.onVisible);
    show(document.getElementById("away"), false);
    const link = document.getElementById("link");
    link.className = "link";
    link.textContent = "";
  }
}
