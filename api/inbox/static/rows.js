// The selected row of a list.

import { all, one } from "./page.js";

/** Select the next row, or the one before. */
export function select(step) {
  const rows = all("[data-rows] > li").filter((row) => !row.inert);
  const at = rows.findIndex((row) => row.classList.contains("selected"));
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + step, 0), rows.length - 1)];
  rows[at]?.classList.remove("selected");
  next?.classList.add("selected");
  one(".title", next)?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}
