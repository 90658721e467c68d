// Relative times, by the server's clock.

import { all } from "./page.js";

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
let serverAheadMs = 0;

/** Set the clock by the server's time, in ISO 8601. */
export function setClock(now) {
  if (now) serverAheadMs = Date.parse(now) - Date.now();
}

/** Write the words of each relative time on the page. */
export function tellTimes() {
  const now = Date.now() + serverAheadMs;
  for (const time of all("time[data-moment]")) {
    const isDeadline = time.dataset.moment === "left";
    const seconds = Math.round((Date.parse(time.dateTime) - now) / 1000) * (isDeadline ? 1 : -1);
    const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ["second", 1];
    const count = Math.max(Math.floor(seconds / size), 0);
    const span = `${count} ${unit}${count === 1 ? "" : "s"}`;
    const words = isDeadline ? (seconds <= 0 ? "overdue" : `${span} left`) : (seconds < 5 ? "just now" : `${span} ago`);
    if (time.textContent !== words) time.textContent = words;
  }
}
