// The panels of further answers on a card: a denial with a reason, and more.

import { isHeld } from "./holds.js";
import { one } from "./page.js";
import { idOf } from "./split.js";

/** Open the line for a denial's reason, whose Enter denies. Returns false for a card or row without such a line. */
export function openDenial(card) {
  const panel = one("details.deny", card);
  if (!panel) return false;
  if (!isHeld(idOf(card))) {
    panel.open = true;
    one("textarea", panel).focus();
  }
  return true;
}

document.addEventListener("keydown", (event) => {
  const panel = event.target.closest?.("details.answer[open]");
  if (!panel) return;
  const isLine = event.target.name === "deny_message";
  if (event.key === "Escape") {
    panel.open = false;
    one("summary", panel).focus();
  } else if (isLine && event.key === "Enter" && !event.altKey && !event.isComposing) {
    event.preventDefault();
    if (!event.repeat) one(event.shiftKey ? "button[value=end]" : "button[value=deny]", panel)?.click();
  } else if (isLine && event.repeat && !event.target.value) {
    event.preventDefault(); // the key that opened the line is still held
  }
});
