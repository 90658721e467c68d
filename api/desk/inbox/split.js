// The pane beside the list: the card of the selected row, loaded in place. A narrow window has no pane, and opens the card's page.

import { renew } from "./merge.js";
import { all, load, one } from "./page.js";

/** The id of the approval whose card the pane shows, and of the one that it is to show. */
let current = "";
let selectedId = "";
let isLoading = false;

/** True if the window is wide enough for the pane. */
export const hasPane = () => Boolean(one("#pane:not([hidden])")?.checkVisibility());

/** Return the card of an approval in the pane; undefined while another card is there, or while this one is loading. */
export const cardInPane = (id) => one(`#pane:not(.loading) > [data-of="${id}"]`) ?? undefined;

/** The id of the approval of a row, or of a card on its page or in the pane. */
export const idOf = (card) => card?.dataset.of ?? card?.id;

/** Open the pane, if the page is a list. */
export function openPane() {
  const pane = one("#pane");
  if (!pane) return;
  current = selectedId = "";
  pane.hidden = false;
  one("#split").classList.add("has-pane");
}

/** Show the card of a row in the pane. Until it has come, no key and no button decides the card before. */
export async function preview(id) {
  if (!hasPane() || id === selectedId) return;
  selectedId = id;
  const pane = one("#pane");
  pane.classList.add("loading");
  pane.inert = true;
  if (isLoading) return; // whoever walks down the list needs the last card only
  isLoading = true;
  while (selectedId && selectedId !== current) await loadCard(selectedId);
  isLoading = false;
}

async function loadCard(id) {
  try {
    const { page } = await load(`/inbox/approvals/${id}`);
    if (selectedId === id) putCard(page, id);
  } catch {
    if (selectedId === id) selectedId = "";
  }
}

/** Put the card of another page into the pane, with the sentence of a refusal. */
export function putCard(page, id) {
  const pane = one("#pane");
  const card = one("article[data-card]", page);
  const parts = [one("#refusal, .narrow p", page), card].filter(Boolean).map((node) => document.importNode(node, true));
  const copy = card && parts.at(-1);
  if (copy) {
    copy.dataset.of = id; // the row has the id
    copy.removeAttribute("id");
    for (const title of all("h1", copy)) lower(title);
  }
  pane.replaceChildren(...parts);
  pane.classList.remove("loading");
  pane.inert = false;
  pane.scrollTop = 0;
  current = selectedId = id;
}

/** Make a title of the page one of a part of a page. */
function lower(title) {
  const heading = document.createElement("h2");
  heading.className = title.className;
  heading.append(...title.childNodes);
  title.replaceWith(heading);
}

/** Bring the card in the pane up to date. */
export async function refreshPane() {
  const id = current;
  if (!id || !hasPane() || !cardInPane(id)) return;
  const { status, page } = await load(`/inbox/approvals/${id}`);
  if (status !== 200 || current !== id || !cardInPane(id)) return;
  for (const part of all("#pane [data-live][id]")) {
    const fresh = page.getElementById(part.id);
    if (fresh) renew(part, fresh);
    else part.remove();
  }
}
