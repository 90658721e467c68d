// The selected row of a list. Its card is in the pane, and the history remembers it, so that the way back leads to it.

import { all, one } from "./page.js";
import { hasPane, openPane, preview } from "./split.js";

const ROWS = "[data-rows] > li";

export const selectedRow = () => one(`${ROWS}.selected`);

/** Select the next row that is not held, or the one before. At the end of the list the selection stays. */
export function select(step) {
  const rows = all(ROWS).filter((row) => row.checkVisibility());
  const at = rows.findIndex((row) => row.classList.contains("selected"));
  const behind = step > 0 ? rows.slice(at + 1) : rows.slice(0, at < 0 ? rows.length : at).reverse();
  const next = behind.find((row) => !row.inert && !row.matches(".over")) ?? behind.find((row) => !row.inert) ?? rows[at];
  choose(next);
  one(".title", next)?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

/** Mark this row as selected, and show its card in the pane. */
export function choose(row) {
  if (!row) return;
  for (const old of all(`${ROWS}.selected`)) old.classList.remove("selected");
  row.classList.add("selected");
  if (!row.id || !one("#pane")) return;
  history.replaceState({ ...history.state, row: row.id }, "");
  preview(row.id);
}

/** Choose every shown row that shows its whole call, or none if all of these are chosen. Without one: every shown row. */
export function chooseAll() {
  const boxes = all("[data-rows] > li:not([inert]) input[form=several]").filter((box) => box.checkVisibility());
  const wholeBoxes = boxes.filter((box) => !box.matches(".partial"));
  const choice = wholeBoxes.length ? wholeBoxes : boxes;
  const isChosen = choice.every((box) => box.checked);
  for (const box of isChosen ? boxes : choice) box.checked = !isChosen;
  boxes[0]?.dispatchEvent(new Event("change", { bubbles: true }));
  if (one("[data-choose-all]")) one("[data-choose-all]").textContent = isChosen ? "Choose all shown" : "Choose none";
}

/** Open the pane of a list with the row that was selected when the page was left, or else the first. */
export function startRows() {
  openPane();
  // A choice that came with the page is the person's from here on: a new row of the list is chosen by nobody.
  for (const box of all("input[form=several][checked]")) {
    box.checked = true; // in this order: a box that nobody has touched follows its default
    box.defaultChecked = false;
    box.dispatchEvent(new Event("change", { bubbles: true }));
  }
  const rememberedRow = document.getElementById(history.state?.row);
  if (rememberedRow?.matches(ROWS)) {
    choose(rememberedRow);
    rememberedRow.scrollIntoView({ block: "nearest" });
  } else if (hasPane()) choose(one(ROWS));
}

document.addEventListener("click", (event) => {
  if (!event.target.closest?.("[data-choose-all]")) return;
  event.preventDefault();
  chooseAll();
});

// A click on a row shows its card in the pane. The Enter key, and a click on the row whose card is shown, open the card's page.
document.addEventListener("click", (event) => {
  const row = event.target.closest?.("a.title")?.closest(ROWS);
  if (!row || !event.detail || event.ctrlKey || event.metaKey || event.shiftKey || !hasPane()) return;
  if (row.classList.contains("selected")) return;
  event.preventDefault();
  choose(row);
});
