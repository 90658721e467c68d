// The search as a dialog, opened by `/` or Ctrl-K. Its results are those of the page /inbox/search.

import { all, load, one } from "./page.js";

const PAUSE_MS = 150;
const dialog = one("#finder");
const field = one("#finder input");
let timer;

async function look() {
  const words = field.value;
  try {
    const { status, page } = await load(`/inbox/search?q=${encodeURIComponent(words)}`);
    const results = one("#results", page);
    if (status === 200 && results && words === field.value) {
      one("#finder-results").replaceChildren(...[...results.childNodes].map((node) => document.importNode(node, true)));
    }
  } catch {
    // The next letter asks again. Enter opens the page of the search.
  }
}

/** Open the dialog. */
export function find() {
  if (!dialog || dialog.open) return;
  dialog.showModal();
  field.select();
  if (!one("#finder-results").childElementCount) look();
}

/** Move the focus to the next result, or to the one before. */
function move(step) {
  const stops = [field, ...all("#finder-results a")];
  const next = stops[stops.indexOf(document.activeElement) + step];
  next?.focus();
}

field?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(look, PAUSE_MS);
});
dialog?.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  move(step);
});
dialog?.addEventListener("click", ({ target }) => target === dialog && dialog.close());
for (const link of all("a.finder-link")) {
  link.addEventListener("click", (event) => {
    event.preventDefault();
    find();
  });
}

// A listener of the capture phase, because the search takes `/` before any page does.
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, dialog[open]");
  const isShortcut = (event.key === "k" && (event.ctrlKey || event.metaKey)) || (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey);
  if (!isShortcut || one("dialog[open]") || !dialog) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  find();
}, { capture: true });
