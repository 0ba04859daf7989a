// Numbers for people.

const DASH = "–";

/** 1234567 as "1,234,567". */
export function number(value) {
  return value === null || value === undefined ? DASH : Math.round(value).toLocaleString("en-US");
}

/** Three digits that count, and k, M, G. */
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

/** Bytes with a unit. */
export function bytes(value) {
  if (value === null || value === undefined) return DASH;
  const units = ["B", "KB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${digits(value)} ${units[unit]}`;
}

/** Dollars: cents, and more digits where it is less than a few. */
export function dollars(value) {
  if (value === null || value === undefined) return DASH;
  if (value === 0) return "$0";
  if (Math.abs(value) >= 999.5) return `$${number(value)}`;
  if (Math.abs(value) >= 0.1) return `$${value.toFixed(2)}`;
  return `$${Number(value.toPrecision(2))}`;
}

/** A time: "3 d 4 h", "2 h 05 min", "4 min 10 s", "3.2 s". */
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

/** A time that nobody knows exactly: "50 s", "8 min", "5.5 h", "3 d". */
export function rough(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return DASH;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  const unit = seconds < 172_800 ? [3600, "h"] : [86_400, "d"];
  const value = seconds / unit[0];
  return `${value < 9.95 ? Number(value.toFixed(1)) : Math.round(value)} ${unit[1]}`;
}

/** "a to b", or one of them where both read the same. */
export function range([low, high], format) {
  const [from, to] = [format(low), format(high)];
  return from === to ? from : `${from} to ${to}`;
}

/** When: the time of day, and the day unless it is today. */
export function clock(ms) {
  if (!ms) return DASH;
  const date = new Date(ms);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (date.toDateString() === new Date().toDateString()) return time;
  return `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

/** A count of something. */
export function count(value, one, many = `${one}s`) {
  return `${number(value)} ${value === 1 ? one : many}`;
}

export function percent(part) {
  return Number.isFinite(part) ? `${Math.round(part * 100)} %` : DASH;
}

const LIMITS = { "max-depth": "depth limit", "max-cost": "budget", "max-hours": "time limit" };

/** What ended a run before its time, in words; empty if nothing did. */
export function endedBy(limit) {
  return limit ? `ended by its ${LIMITS[limit] ?? limit}` : "";
}

const FACTORS = { "": 1, k: 1e3, m: 1e6, g: 1e9 };
/** The widest beam. */
const MAX_WIDTH = 2 ** 30;

/** The wells of "10000", "10k" or "2.5M", as the command line reads them; null if it is none. */
export function wells(text) {
  const match = /^([0-9_]*\.?[0-9_]+|[0-9_]+\.)\s*([kmg]?)$/i.exec(text.trim());
  if (!match) return null;
  const value = Math.round(Number(match[1].replaceAll("_", "")) * FACTORS[match[2].toLowerCase()] * 1e6) / 1e6;
  return Number.isInteger(value) && value >= 1 && value <= MAX_WIDTH ? value : null;
}
