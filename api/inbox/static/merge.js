// Brings a page up to date without moving its content, and without touching fields that a person has filled in.

import { all, one, say } from "./page.js";

/** The cards whose allow waits five seconds, by their ids. */
export const held = new Map();

/** A copy of the node without the parts that change by themselves, to compare the rest. */
function still(node) {
  const copy = node.cloneNode(true);
  for (const time of all("time", copy)) time.textContent = "";
  for (const option of all("details", copy)) option.removeAttribute("open");
  for (const token of all("[name=csrf_token]", copy)) token.remove();
  return copy;
}

const isBusy = (node) => all("textarea, input:not([type=hidden]), select", node).some((field) =>
  field === document.activeElement || (field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
    : field.tagName === "SELECT" ? [...field.options].some((option) => option.selected !== option.defaultSelected) : field.value !== field.defaultValue));

/** Put new content into a part of the page. A part that is being filled in stays, unless the card was decided. The focus stays. */
export function renew(old, fresh) {
  if (still(old).isEqualNode(still(fresh))) return;
  const over = (one("#outcome", fresh) && !one("#outcome", old)) || (fresh.matches(".over") && !old.matches(".over"));
  if (isBusy(old) && !over) return;
  const inside = old.contains(document.activeElement) && document.activeElement;
  const open = all("details", old).map((part) => part.open);
  old.replaceChildren(...[...fresh.childNodes].map((node) => document.importNode(node, true)));
  const isSelected = old.classList.contains("selected");
  old.className = fresh.className;
  old.classList.toggle("selected", isSelected);
  if (over) {
    if (inside) one("#outcome")?.focus();
    return;
  }
  all("details", old).forEach((part, i) => (part.open = open[i] ?? part.open));
  if (inside) (all("a, button, summary", old).find((node) => node.textContent === inside.textContent) ?? one("#main")).focus({ preventScroll: true });
}

/** Bring this page up to date: rows keep their places, and new rows come last. */
export function merge(fresh) {
  document.title = fresh.title;
  document.body.dataset.mark = fresh.body.dataset.mark ?? "";
  for (const part of all("[data-live][id]")) {
    const now = fresh.getElementById(part.id);
    if (now) renew(part, now);
  }
  follow(fresh);
  const rows = one("[data-rows]");
  if (!rows) return;
  let added = 0;
  for (const row of all("[data-rows] > li", fresh)) {
    const old = document.getElementById(row.id);
    if (old && !held.has(old.id)) renew(old, row);
    if (!old) {
      rows.append(document.importNode(row, true));
      added += 1;
    }
  }
  if (added) say(added === 1 ? "A new call waits, at the end of the list." : `${added} new calls wait, at the end of the list.`);
}

/** Of a session's page: put new events at the end, and renew those whose state changed. */
function follow(fresh) {
  const story = one("[data-story]");
  const isAtEnd = innerHeight + scrollY > document.body.scrollHeight - 120;
  for (const entry of story ? all("[data-story] > li", fresh) : []) {
    const old = document.getElementById(entry.id);
    if (old) renew(old, entry);
    else story.append(document.importNode(entry, true));
  }
  if (story && one("#writing") && all("li.agent", story).some(({ id }) => id === one("#writing").dataset.event)) one("#writing").hidden = true;
  if (story && isAtEnd) scrollTo(0, document.body.scrollHeight);
}
