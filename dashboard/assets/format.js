// Formats numbers, times and sizes.

const DASH = "–";

/** Formats a whole number: "1,234,567". */
export function number(value) {
  return value === null || value === undefined ? DASH : Math.round(value).toLocaleString("en-US");
}

/** Formats a number with all of its digits: "1.5". */
export function exact(value) {
  return value.toLocaleString("en-US", { maximumFractionDigits: 20 });
}

/** Formats a number with three significant digits and, if it is large, the unit k, M, G or T. */
export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return DASH;
  const units = ["", "k", "M", "G", "T"];
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return digits(value) + units[unit];
}

function digits(value) {
  const size = Math.abs(value);
  if (Number.isInteger(value) || size >= 99.95) return value.toFixed(0);
  return value.toFixed(size >= 9.995 ? 1 : 2);
}

/** Formats a number of bytes. */
export function bytes(value) {
  if (value === null || value === undefined) return DASH;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${digits(value)} ${units[unit]}`;
}

/** Formats dollars: large amounts without cents, amounts below 10 cents with two significant digits. */
export function dollars(value) {
  if (value === null || value === undefined) return DASH;
  if (value === 0) return "$0";
  if (Math.abs(value) >= 999.5) return `$${number(value)}`;
  if (Math.abs(value) >= 0.1) return `$${value.toFixed(2)}`;
  return `$${Number(value.toPrecision(2))}`;
}

/** Formats a duration: "3 d 4 h", "2 h 05 min", "4 min 10 s", "3.2 s". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return DASH;
  if (seconds < 59.95) return `${digits(seconds)} s`;
  const whole = Math.round(seconds);
  const [days, hours, minutes] = [Math.floor(whole / 86_400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60];
  const two = (value) => String(value).padStart(2, "0");
  if (days > 0) return `${days} d ${hours} h`;
  if (hours > 0) return `${hours} h ${two(minutes)} min`;
  return `${minutes} min ${two(whole % 60)} s`;
}

/** Formats an estimated duration: "50 s", "8 min", "5.5 h", "3 d". */
export function rough(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return DASH;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  const unit = seconds < 172_800 ? [3600, "h"] : [86_400, "d"];
  const value = seconds / unit[0];
  return `${value < 9.95 ? Number(value.toFixed(1)) : Math.round(value)} ${unit[1]}`;
}

/** Formats a range as "a to b", or as one value if both ends have the same text. */
export function range([low, high], format) {
  const [from, to] = [format(low), format(high)];
  return from === to ? from : `${from} to ${to}`;
}

/** Formats a point in time as the time of day. Adds the date unless it is today. */
export function clock(ms) {
  if (!ms) return DASH;
  const date = new Date(ms);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (date.toDateString() === new Date().toDateString()) return time;
  return `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

/** Formats a number with its noun: "1 run", "2 runs". */
export function count(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

export function percent(part) {
  return Number.isFinite(part) ? `${Math.round(part * 100)} %` : DASH;
}

const LIMITS = { "max-depth": "depth limit", "max-cost": "cost limit", "max-hours": "time limit" };

/** Describes the limit that stopped a run. Returns an empty string if no limit stopped it. */
export function stoppedBy(limit) {
  return limit ? `stopped at its ${LIMITS[limit] ?? limit}` : "";
}

const FACTORS = { "": 1, k: 1e3, m: 1e6, g: 1e9 };
/** Maximum width of a beam. */
const MAX_WIDTH = 2 ** 30;

/** Parses a width such as "10000", "10k" or "2.5M", as the command line does. Returns null if the text is invalid. */
export function wells(text) {
  const match = /^([0-9_]*\.?[0-9_]+|[0-9_]+\.)\s*([kmg]?)$/i.exec(text.trim());
  if (!match) return null;
  const value = Math.round(Number(match[1].replaceAll("_", "")) * FACTORS[match[2].toLowerCase()] * 1e6) / 1e6;
  return Number.isInteger(value) && value >= 1 && value <= MAX_WIDTH ? value : null;
}
