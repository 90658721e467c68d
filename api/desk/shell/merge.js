// Puts new content into a page. Content keeps its place, and a field that a person has filled in keeps its value.

import { isHeld } from "./holds.js";
import { all, one, say } from "./page.js";
import { settleAgain } from "./settling.js";

/** Return a copy of the node for comparisons: without the times, the state of details, and the tokens of forms. */
function comparable(node) {
  const copy = node.cloneNode(true);
  for (const time of all("time", copy)) time.textContent = "";
  for (const details of all("details", copy)) details.removeAttribute("open");
  for (const token of all("[name=csrf_token]", copy)) token.remove();
  return copy;
}

/** True if the field has the focus, or another value than the server gave it. */
function isInUse(field) {
  if (field === document.activeElement) return true;
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (field.tagName === "SELECT") return [...field.options].some((option) => option.selected !== option.defaultSelected);
  return field.value !== field.defaultValue;
}

const isBusy = (node) => all("textarea, input:not([type=hidden]), select", node).some(isInUse);

/** Show the texts that a person has written in a part that goes away, in a note below the part; on a card below its outcome. */
function keepDrafts(part) {
  const isDraft = (field) => field.value.trim() && field.value !== field.defaultValue;
  const texts = all("textarea, input[type=text]", part).filter(isDraft).map(({ value }) => value);
  if (!texts.length) return;
  const note = document.createElement("aside");
  note.className = "notice draft";
  note.append("You were writing:", ...texts.map((text) => {
    const quote = document.createElement("pre");
    quote.textContent = text;
    return quote;
  }));
  (part.closest(".card")?.querySelector("#settled") ?? part).after(note);
}

/** Put new content into a part of the page. A part in use stays, unless its call is now decided. The focus stays. */
export function renew(old, fresh) {
  if (comparable(old).isEqualNode(comparable(fresh))) return;
  const isNewlyDecided = (one("#outcome, .decided", fresh) && !one("#outcome, .decided", old)) || (fresh.matches(".over") && !old.matches(".over"));
  if (isBusy(old) && !isNewlyDecided) return;
  if (isNewlyDecided) keepDrafts(old);
  const focused = old.contains(document.activeElement) && document.activeElement;
  const wereOpen = all("details", old).map((details) => details.open);
  if (old.id === "evidence") settleAgain();
  old.replaceChildren(...[...fresh.childNodes].map((node) => document.importNode(node, true)));
  const isSelected = old.classList.contains("selected");
  old.className = fresh.className;
  old.classList.toggle("selected", isSelected);
  if (isNewlyDecided) {
    if (focused) one("#outcome")?.focus();
    return;
  }
  all("details", old).forEach((details, i) => (details.open = wereOpen[i] ?? details.open));
  if (!focused) return;
  const sameControl = all("a, button, summary", old).find((control) => control.textContent === focused.textContent);
  (sameControl ?? one("#main")).focus({ preventScroll: true });
}

/** Bring this page up to date: rows keep their places, and new rows come last. */
export function merge(fresh) {
  document.title = fresh.title;
  for (const name of ["mark", "newest", "events"]) document.body.dataset[name] = fresh.body.dataset[name] ?? "";
  for (const part of all("[data-live][id]").filter((node) => !node.closest("#pane"))) {
    const freshPart = fresh.getElementById(part.id);
    if (freshPart) renew(part, freshPart);
    else {
      keepDrafts(part);
      part.remove();
    }
  }
  mergeStory(fresh);
  const rows = one("#arrived") ?? one("[data-rows]");
  if (!rows) return;
  for (const row of all("[data-rows] > li", fresh)) {
    const old = document.getElementById(row.id);
    if (!old) rows.append(document.importNode(row, true));
    else if (!isHeld(old.id)) renew(old, row);
  }
  const count = fresh.body.dataset.arrived;
  if (count && count !== "0") say(count === "1" ? "A new call waits." : `${count} new calls wait.`);
}

/** Bring the conversation of a session's page up to date: new events come last, and an event with a new state is renewed. */
function mergeStory(fresh) {
  const story = one("[data-story]");
  if (!story) return;
  const isAtEnd = innerHeight + scrollY > document.body.scrollHeight - 120;
  for (const entry of all("[data-story] > li", fresh)) {
    const old = document.getElementById(entry.id);
    if (old) renew(old, entry);
    else story.append(document.importNode(entry, true));
  }
  const writing = one("#writing");
  if (writing && all("li.agent", story).some(({ id }) => id === writing.dataset.event)) writing.hidden = true;
  if (isAtEnd) scrollTo(0, document.body.scrollHeight);
}
