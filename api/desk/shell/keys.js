// Keyboard shortcuts.

import { openDenial } from "./answers.js";
import { undo } from "./forms.js";
import { isHeld } from "./holds.js";
import { one } from "./page.js";
import { select } from "./rows.js";

const NEEDS_CARD = ["a", "d", "e", "x"];
const MAY_REPEAT = ["j", "k"];
const KEYS = {
  j: () => (one("[data-rows]") ? select(1) : one("a[data-next]")?.click()),
  k: () => (one("[data-rows]") ? select(-1) : history.back()),
  a: (card) => one("button[value=allow]:enabled, a.review", card)?.click(),
  d: (card) => openDenial(card) || one("button[value=deny]:enabled", card)?.click(),
  e: (card) => card.id && !isHeld(card.id) && location.assign(`/inbox/approvals/${card.id}/edit`),
  x: (card) => one("input[form=several]", card)?.click(),
  z: undo,
  "?": () => one("#keys")?.showModal(),
};

const isTyping = (target) => target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, dialog[open]");

document.addEventListener("keydown", (event) => {
  // A person who holds a key has not read what comes meanwhile. The Enter key presses the button that has the focus.
  const isEnterHeld = event.repeat && event.key === "Enter" && !event.target.closest?.("textarea");
  if (isEnterHeld) event.preventDefault();
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  const card = one("[data-rows]") ? one("[data-rows] > li.selected") : one("article[data-card]");
  if (!card && NEEDS_CARD.includes(event.key)) return;
  event.preventDefault();
  if (!event.repeat || MAY_REPEAT.includes(event.key)) KEYS[event.key](card);
});
