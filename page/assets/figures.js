// Functions that format numbers.

export function number(value) {
  return value.toLocaleString("en-US");
}

export function count(value, unit) {
  return `${number(value)} ${unit}${value === 1 ? "" : "s"}`;
}

/** Returns a number with three significant digits and a unit, such as 1.25M. */
export function short(value) {
  const [divisor, unit] = value >= 1e6 ? [1e6, "M"] : value >= 1e3 ? [1e3, "k"] : [1, ""];
  return `${Number((value / divisor).toPrecision(3))}${unit}`;
}

/** Describes the range of columns that contains `numbers`. */
export function columns(numbers) {
  const [first, last] = [Math.min(...numbers), Math.max(...numbers)];
  return first === last ? `column ${first}` : `columns ${first}–${last}`;
}
