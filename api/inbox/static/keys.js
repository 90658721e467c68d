// Keyboard shortcuts.

import { held } from "./merge.js";
import { one } from "./page.js";
import { select } from "./rows.js";

const NEEDS_CARD = ["a", "d", "e", "x"];
const KEYS = {
  j: () => (one("[data-rows]") ? select(1) : one("a[data-next]")?.click()),
  k: () => (one("[data-rows]") ? select(-1) : history.back()),
  a: (card) => one("button[value=allow]:enabled", card)?.click(),
  d: (card) => one("button[value=deny]:enabled", card)?.click(),
  e: (card) => card.id && !held.has(card.id) && location.assign(`/inbox/approvals/${card.id}/edit`),
  x: (card) => one("input[form=several]", card)?.click(),
  "/": () => {
    const field = one("#q");
    if (!field) return;
    field.closest("details").open = true;
    field.focus();
  },
  "?": () => one("#keys")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, dialog[open]");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  const card = one("[data-rows]") ? one("[data-rows] > li.selected") : one("article[data-card]");
  if (!card && NEEDS_CARD.includes(event.key)) return;
  event.preventDefault();
  KEYS[event.key](card);
});
