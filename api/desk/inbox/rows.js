// The selected row of a list.

import { all, one } from "./page.js";

/** Select the next row that is not held, or the one before. At the end of the list the selection stays. */
export function select(step) {
  const rows = all("[data-rows] > li");
  const at = rows.findIndex((row) => row.classList.contains("selected"));
  const behind = step > 0 ? rows.slice(at + 1) : rows.slice(0, at < 0 ? rows.length : at).reverse();
  const next = behind.find((row) => !row.inert) ?? rows[at];
  rows[at]?.classList.remove("selected");
  next?.classList.add("selected");
  one(".title", next)?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}
