// Sends forms without a reload, shows the next page in the place of this one, and holds an allow for five seconds.

import { listen, refresh } from "./live.js";
import { held, renew } from "./merge.js";
import { all, load, one, say } from "./page.js";
import { select } from "./rows.js";
import { setClock } from "./times.js";

const HOLD_MS = 5000;

/** The ids of the cards whose allow is held, as the server reads them. */
const heldIds = () => [...held.keys()].join(" ");

/** Show another page in this document, so that held allows stay held. `isNew`: add the URL to the history. */
function show({ page, url }, isNew = true) {
  if (isNew) history.pushState(null, "", url);
  document.title = page.title;
  one("#main").replaceChildren(...[...one("#main", page).childNodes].map((node) => document.importNode(node, true)));
  const nav = one("#nav-inbox", page);
  if (nav) renew(one("#nav-inbox"), nav);
  for (const name of ["stream", "page", "mark", "now", "events"]) document.body.dataset[name] = page.body.dataset[name] ?? "";
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

/** Send a form. `isQuiet`: stay on this page, and tell the outcome in a toast. The list stays in any case. */
async function send(form, body, isQuiet) {
  const buttons = all("button", form);
  for (const button of buttons) button.disabled = true;
  try {
    const answer = await load(form.action, body);
    const refusal = one("#refusal, .narrow p", answer.page)?.textContent ?? "";
    const decided = one("#decided", answer.page)?.textContent.trim();
    const isRefused = answer.status >= 400;
    if (!isQuiet && document.body.dataset.page !== "list") show(answer, !isRefused);
    else {
      if (isRefused) say(`Not decided. ${refusal}`.trim());
      else if (isQuiet && decided) say(decided);
      await refresh();
    }
  } catch (error) {
    say(`${error.message} Nothing is known to be decided; look again.`);
  }
  for (const button of buttons) button.disabled = false;
}

/** Hold an allow for five seconds, with a button to undo, and then send the form. */
function hold(form, submitter, body) {
  const ids = form.id === "several"
    ? body.getAll("approval").map((idAndHash) => idAndHash.split(" ")[0])
    : [form.closest("[data-card]").id];
  const undo = document.createElement("button");
  undo.textContent = "Undo";
  const words = ids.length > 1 ? `Allowing ${ids.length} calls once` : submitter.dataset.undo;
  const toast = say(words, { stays: true, button: undo });
  const release = () => {
    clearTimeout(entry.timer);
    toast.remove();
    for (const id of ids) {
      held.delete(id);
      document.getElementById(id)?.classList.remove("over");
      document.getElementById(id)?.removeAttribute("inert");
    }
  };
  const entry = { release, timer: setTimeout(() => {
    release();
    send(form, body, true);
  }, HOLD_MS) };
  undo.addEventListener("click", () => {
    release();
    say("Undone. Nothing was decided.");
    if (document.body.dataset.page === "card" && !document.getElementById(ids[0])) go(`/inbox/approvals/${ids[0]}`);
  });
  for (const id of ids) held.set(id, entry);
  if (document.body.dataset.page === "card") {
    go(`/inbox/next?after=${ids[0]}&held=${encodeURIComponent(heldIds())}`);
    return;
  }
  for (const id of ids) {
    const row = document.getElementById(id);
    row.classList.add("over");
    for (const box of all("input[type=checkbox]", row)) box.checked = false;
    if (row.classList.contains("selected")) select(1);
    row.inert = true;
  }
}

document.addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (!form.matches("[data-soft]")) return;
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, submitter));
  body.set("held", heldIds());
  if (submitter?.dataset.undo) hold(form, submitter, body);
  else send(form, body, false);
});

// Leaving the page drops the held allows, even if the browser shows the page again.
addEventListener("pagehide", () => [...held.values()].forEach(({ release }) => release()));
addEventListener("pageshow", (event) => event.persisted && refresh());
addEventListener("popstate", () => go(location.href, false));
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-next]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(`${link.href}&held=${encodeURIComponent(heldIds())}`);
});
document.addEventListener("change", () => {
  const chosen = all("[form=several]:checked").length;
  if (one("#chosen")) one("#chosen").textContent = chosen ? `${chosen} of ${all("input[form=several]").length}` : "mark calls to decide them together";
});

/** Start the clock and the stream of the page that is shown. */
export function start() {
  setClock(document.body.dataset.now);
  listen();
}
