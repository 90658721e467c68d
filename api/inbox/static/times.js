// Relative times, by the server's clock.

import { all } from "./page.js";

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
let ahead = 0;

/** Count from the server's time. */
export function setClock(now) {
  if (now) ahead = Date.parse(now) - Date.now();
}

export function tellTimes() {
  const now = Date.now() + ahead;
  for (const time of all("time[data-moment]")) {
    const seconds = Math.round((Date.parse(time.dateTime) - now) / 1000) * (time.dataset.moment === "left" ? 1 : -1);
    const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ["second", 1];
    const count = Math.max(Math.floor(seconds / size), 0);
    const span = `${count} ${unit}${count === 1 ? "" : "s"}`;
    const words = time.dataset.moment === "left" ? (seconds <= 0 ? "overdue" : `${span} left`) : seconds < 5 ? "just now" : `${span} ago`;
    if (time.textContent !== words) time.textContent = words;
  }
}
