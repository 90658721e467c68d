// Keyboard shortcuts.

import { openDenial } from "./answers.js";
import { undo } from "./forms.js";
import { isHeld } from "./holds.js";
import { one } from "./page.js";
import { chooseAll, select, selectedRow } from "./rows.js";
import { cardInPane, hasPane, idOf } from "./split.js";

const NEEDS_CARD = ["a", "d", "e", "x"];
/** The keys that a person may switch off. */
const DECIDES = ["a", "d"];
const MAY_REPEAT = ["j", "k"];
const KEYS = {
  j: () => (one("[data-rows]") ? select(1) : one("a[data-next]")?.click()),
  k: () => (one("[data-rows]") ? select(-1) : history.back()),
  a: (card) => press(card, "button[value=allow]:enabled", ""),
  d: (card) => openDenial(card) || press(card, "button[value=deny]:enabled", "?open=deny"),
  e: (card) => idOf(card) && !isHeld(idOf(card)) && location.assign(`/inbox/approvals/${idOf(card)}/edit`),
  x: () => one("input[form=several]", selectedRow() ?? undefined)?.click(),
  X: chooseAll,
  z: undo,
  "?": () => one("#keys")?.showModal(),
};

/** Press a button of the card. A row has none: its card opens, unless the pane is about to show it. */
function press(card, selector, query) {
  if (!card.matches("li")) one(selector, card)?.click();
  else if (!hasPane() && !isHeld(card.id)) location.assign(one("a.title", card).href + query);
}

const isTyping = (target) => target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, dialog[open]");

document.addEventListener("keydown", (event) => {
  // A person who holds a key has not read what comes meanwhile. The Enter key presses the button that has the focus.
  const isEnterHeld = event.repeat && event.key === "Enter" && !event.target.closest?.("textarea");
  if (isEnterHeld) event.preventDefault();
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  if (DECIDES.includes(event.key) && "noDecidingKeys" in document.body.dataset) return;
  const row = selectedRow();
  const card = one("[data-rows]") ? row && (cardInPane(row.id) ?? row) : one("article[data-card]");
  if (!card && NEEDS_CARD.includes(event.key)) return;
  event.preventDefault();
  if (!event.repeat || MAY_REPEAT.includes(event.key)) KEYS[event.key](card);
});
