// Communication with the coordinator: API calls, and the event stream of the current page.

import { setText, show } from "./dom.js";

/** Delay before the first reconnection, in milliseconds. */
const MIN_BACKOFF = 500;
/** Maximum delay before a reconnection, in milliseconds. */
const MAX_BACKOFF = 15_000;
/** Maximum duration of a connection attempt, in milliseconds. */
const CONNECT_TIMEOUT = 25_000;
/** Time without a connection after which the page shows that it is offline, in milliseconds. */
const OFFLINE_DELAY = 700;

/** The error of a failed call. `status` is 0 if there was no response. */
export class CallError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

let onSignedOut = () => {};

/** Sets the function to call when the server requires the user to sign in. */
export function whenSignedOut(work) {
  onSignedOut = work;
}

/** Calls the API with POST if there is a body, and with GET otherwise. */
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
    throw new CallError(0, "The coordinator is unreachable.");
  }
  const text = await response.text();
  let answer = null;
  try {
    answer = text === "" ? null : JSON.parse(text);
  } catch {
    throw new CallError(response.status, `The response is not JSON (HTTP ${response.status}).`);
  }
  if (response.ok) return answer;
  if (response.status === 401 && path !== "login") onSignedOut();
  throw new CallError(response.status, answer?.error ?? `HTTP ${response.status}`);
}

/** Returns the API path of a run. */
export function runPath(run) {
  return `runs/${encodeURIComponent(run)}`;
}

/**
 * The event stream of a page. For every connection, `path` returns the stream's API path, so that a page can continue
 * after the last event that it received. `handlers` contains functions by event name, which get the event's data. A
 * browser does not report why a stream fails. To find the reason, this class requests the API path `check`. If the
 * response has the status 404, it calls `notFound`.
 */
export class Live {
  constructor(path, handlers, { check = "workers", notFound = () => {} } = {}) {
    this.path = path;
    this.handlers = handlers;
    this.check = check;
    this.notFound = notFound;
    this.backoff = MIN_BACKOFF;
    this.offlineSince = null;
    this.reason = null;
    this.retryAt = 0;
    this.isEnded = false;
    this.lastMessage = Date.now();
    this.onVisibility = () => this.updateVisibility();
    document.addEventListener("visibilitychange", this.onVisibility);
    addEventListener("online", this.onVisibility);
    this.timer = setInterval(() => this.tick(), 500);
    this.open();
  }

  open() {
    this.source?.close();
    this.retryAt = 0;
    this.lastMessage = Date.now();
    const source = new EventSource(`api/v1/${this.path()}`);
    this.source = source;
    source.onopen = () => this.onConnected();
    source.onerror = () => this.onDisconnected();
    for (const [name, handler] of Object.entries(this.handlers)) {
      source.addEventListener(name, (event) => {
        this.onConnected();
        handler(JSON.parse(event.data));
      });
    }
    source.addEventListener("end", () => this.end());
    source.addEventListener("failed", (event) => {
      this.reason = `The coordinator reports an error: ${JSON.parse(event.data)}.`;
      this.onDisconnected();
    });
  }

  onConnected() {
    this.lastMessage = Date.now();
    this.backoff = MIN_BACKOFF;
    this.offlineSince = null;
    this.reason = null;
    this.showState();
  }

  onDisconnected() {
    this.source?.close();
    this.source = null;
    if (this.isEnded || this.retryAt) return;
    this.offlineSince ??= Date.now();
    // The random factor prevents many browsers from reconnecting at the same time.
    this.retryAt = Date.now() + this.backoff * (0.75 + Math.random() / 2);
    this.backoff = Math.min(this.backoff * 2, MAX_BACKOFF);
    this.findReason();
    this.showState();
  }

  /** Requests `check` to find out why the stream failed. */
  async findReason() {
    try {
      await call(this.check);
      if (!this.source) this.reason ??= "The coordinator answers, but sends no updates. Too many browser tabs may be connected.";
    } catch (error) {
      if (error.status === 0) this.reason = null;
      if (this.isEnded || error.status !== 404) return;
      this.end();
      this.notFound(error);
    }
  }

  /** Closes the stream permanently: after its last event, or because its run does not exist. */
  end() {
    this.isEnded = true;
    this.source?.close();
    this.source = null;
    this.onConnected();
  }

  tick() {
    if (this.isEnded) return;
    if (document.hidden) return;
    const now = Date.now();
    const isLate = now - this.lastMessage > CONNECT_TIMEOUT;
    if (this.retryAt && now >= this.retryAt) this.open();
    else if (this.source && isLate && this.source.readyState !== EventSource.OPEN) this.onDisconnected();
    this.showState();
  }

  /** Closes the stream if the page is hidden, and opens it otherwise. */
  updateVisibility() {
    if (this.isEnded) return;
    if (document.hidden) {
      this.source?.close();
      this.source = null;
    } else {
      this.backoff = MIN_BACKOFF;
      this.open();
    }
  }

  showState() {
    const [banner, link] = [document.getElementById("offline"), document.getElementById("link")];
    const isOffline = this.offlineSince !== null && Date.now() - this.offlineSince > OFFLINE_DELAY;
    show(banner, isOffline);
    link.className = `link ${isOffline ? "bad" : this.isEnded ? "" : "good"}`;
    const state = isOffline ? "offline" : this.isEnded ? "ended" : "live";
    if (link.textContent !== state) link.textContent = state;
    // The alert also changes when the page is online again, so that the next outage is announced.
    setText(document.getElementById("offline-reason"), isOffline ? this.offlineText() : "");
    if (isOffline) setText(document.getElementById("offline-retry"), this.retryText());
  }

  offlineText() {
    const since = new Date(this.offlineSince).toLocaleTimeString();
    return `${this.reason ?? "The coordinator is unreachable."} This page shows the state at ${since}. ` +
      "Committed depths are safe: runs resume when a coordinator is running again.";
  }

  retryText() {
    const seconds = Math.ceil((this.retryAt - Date.now()) / 1000);
    return this.retryAt && seconds > 0 ? `Next attempt in ${seconds} s.` : "Connecting …";
  }

  close() {
    this.isEnded = true;
    this.source?.close();
    clearInterval(this.timer);
    document.removeEventListener("visibilitychange", this.onVisibility);
    removeEventListener("online", this.onVisibility);
    show(document.getElementById("offline"), false);
    const link = document.getElementById("link");
    link.className = "link";
    link.textContent = "";
  }
}
