// Sends forms without a reload, and shows the next page in the place of this one. An allow is held before it is sent.

import { draw, dropAll, heldIds, hold, isHeld, undoAll } from "./holds.js";
import { listen, refresh } from "./live.js";
import { renew } from "./merge.js";
import { all, load, one, say } from "./page.js";
import { select, startRows } from "./rows.js";
import { isSettling, settleAgain } from "./settling.js";
import { idOf, putCard } from "./split.js";
import { setClock } from "./times.js";

/** Show another page in this document, so that held allows stay held. `isNew`: add the URL to the history. */
function show({ page, url }, isNew = true) {
  if (isNew) history.pushState(null, "", url);
  document.title = page.title;
  one("#main").replaceChildren(...[...one("#main", page).childNodes].map((node) => document.importNode(node, true)));
  const nav = one("#nav-inbox", page);
  if (nav) renew(one("#nav-inbox"), nav);
  for (const name of ["stream", "page", "mark", "now", "events", "newest"]) document.body.dataset[name] = page.body.dataset[name] ?? "";
  scrollTo(0, 0);
  (one("#refusal, .fault") ?? one("#main")).scrollIntoView({ block: "nearest" });
  (one("[aria-invalid=true]") ?? one("#main")).focus({ preventScroll: true });
  start();
}

/** Load a page and show it. If that fails, the browser opens the page. */
async function go(url, isNew = true) {
  try {
    show(await load(url), isNew);
  } catch {
    location.assign(url);
  }
}

/** Go to the card behind this one, past the cards that are held. */
const goToNext = (id) => go(`/inbox/next?after=${id}&held=${encodeURIComponent(heldIds())}`);

/** Post a form. Returns the page of the answer, with the sentence of a refusal and the notice of a decision. */
async function post(form, body) {
  const answer = await load(form.action, body);
  const refusal = one("#refusal, .narrow p", answer.page)?.textContent ?? "";
  return { answer, isRefused: answer.status >= 400, refusal, decided: one("#decided", answer.page)?.textContent.trim() };
}

const sayNothingIsKnown = (error) => say(`${error.message} Nothing is known to be decided; look again.`);

/** Send a form, and show the page of the answer. A list stays: after a decision in its pane, the next row is selected. */
async function send(form, body) {
  const buttons = all("button", form);
  for (const button of buttons) button.disabled = true;
  try {
    const { answer, isRefused, refusal } = await post(form, body);
    const card = form.closest("#pane [data-card]");
    if (document.body.dataset.page !== "list") show(answer, !isRefused);
    else if (card && (isRefused || answer.url.endsWith(`/${idOf(card)}`))) putCard(answer.page, idOf(card));
    else {
      if (isRefused) say(`Not decided. ${refusal}`.trim());
      else if (card) leaveRow(document.getElementById(idOf(card)));
      await refresh();
    }
  } catch (error) {
    sayNothingIsKnown(error);
  }
  for (const button of buttons) button.disabled = false;
}

/** Hold an allow, and send the form if nobody undoes it. The person stays on the page, which says what became of the allow. */
async function sendLater(form, submitter, body) {
  const ids = body.has("approval")
    ? body.getAll("approval").map((idAndHash) => idAndHash.split(" ")[0])
    : [idOf(form.closest("[data-card]"))];
  const entry = hold(ids, submitter.dataset.undo);
  if (!entry) return;
  if (document.body.dataset.page === "card") goToNext(ids[0]);
  for (const id of ids) leaveRow(document.getElementById(id));
  if (!(await entry.isDue)) return;
  try {
    const { answer, isRefused, refusal, decided } = await post(form, body);
    if (isRefused) say(`Not decided. ${refusal}`.trim());
    else if (decided) say(decided);
    if (!isRefused && one("#together")) show(answer);
  } catch (error) {
    sayNothingIsKnown(error);
  }
  entry.end();
  await refresh();
}

/** Unmark a row, and select the next one if it was selected. */
function leaveRow(row) {
  if (!row) return;
  for (const box of all("input[type=checkbox]", row)) box.checked = false;
  if (row.classList.contains("selected")) select(1);
}

/** Take back all held allows. A card whose allow is taken back is shown again. */
export function undo() {
  const [id] = undoAll();
  if (id && document.body.dataset.page === "card" && !document.getElementById(id)) go(`/inbox/approvals/${id}`);
}

document.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (isSettling(submitter)) {
    event.preventDefault();
    return;
  }
  if (!form.matches("[data-soft]")) return;
  event.preventDefault();
  if (isHeld(idOf(form.closest("[data-card]")))) return;
  const body = new URLSearchParams(new FormData(form, submitter));
  body.set("held", heldIds());
  if (submitter?.dataset.undo) sendLater(form, submitter, body);
  else send(form, body);
});

// Leaving the page drops the held allows, even if the browser shows the page again.
addEventListener("pagehide", dropAll);
addEventListener("pageshow", (event) => event.persisted && refresh());
addEventListener("popstate", () => go(location.href, false));
addEventListener("focus", settleAgain);
document.addEventListener("visibilitychange", () => document.hidden || settleAgain());
document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-undo-all]")) {
    undo();
    return;
  }
  const link = event.target.closest?.("a[data-next]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(`${link.href}&held=${encodeURIComponent(heldIds())}`);
});
document.addEventListener("change", ({ target }) => {
  const chosen = all("[form=several]:checked").length;
  if (chosen && target.matches("[form=several]")) settleAgain(); // a row that is chosen shows more
  if (one("#chosen")) one("#chosen").textContent = chosen ? `${chosen} of ${all("input[type=checkbox][form=several]").length}` : "mark calls to decide them together";
});

/** Start the clock and the stream of the page that is shown, and show its holds. */
export function start() {
  setClock(document.body.dataset.now);
  startRows();
  draw();
  listen();
}
