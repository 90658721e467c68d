// What pages do beyond plain forms: they follow changes, take keys, hold an allow for five seconds, and send forms without a reload.
// Without this module every page works. Markup comes from our own server, as documents, and is never made from text.

const HOLD = 5000;
const SOON = 400;
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const STORED = ["agent.message", "agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use", "agent.tool_result", "agent.mcp_tool_result",
  "user.message", "user.tool_confirmation", "user.tool_result", "user.custom_tool_result", "user.interrupt",
  "session.error", "session.status_idle", "session.status_running", "session.status_terminated", "session.deleted"];
const held = new Map();
let clock = 0;
let source;
let pause = 1000;
let timer;

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/** Fetch a page as a document. The answer to a form is the page behind its redirect. */
function load(url, body) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(body ? "POST" : "GET", url);
    request.responseType = "document";
    request.timeout = 20000;
    if (!body) request.setRequestHeader("x-refresh", "1");
    request.onload = () => {
      if (new URL(request.responseURL).pathname === "/sign-in") location.assign(request.responseURL);
      else if (request.response?.body) resolve({ status: request.status, url: request.responseURL, page: request.response });
      else reject(new Error(`The server answered ${request.status}.`));
    };
    request.onerror = request.ontimeout = () => reject(new Error("The server does not answer just now."));
    request.send(body);
  });
}

// Following changes

/** The node without what changes by itself, to tell whether anything else did. */
function still(node) {
  const copy = node.cloneNode(true);
  for (const time of all("time", copy)) time.textContent = "";
  for (const option of all("details", copy)) option.removeAttribute("open");
  for (const token of all("[name=csrf_token]", copy)) token.remove();
  return copy;
}

const isBusy = (node) => all("textarea, input:not([type=hidden]), select", node).some((field) =>
  field === document.activeElement || (field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked
    : field.tagName === "SELECT" ? [...field.options].some((option) => option.selected !== option.defaultSelected) : field.value !== field.defaultValue));

/** Put new content into a part of the page. What is being filled in stays, unless the card was decided. The focus stays. */
function renew(old, fresh) {
  if (still(old).isEqualNode(still(fresh))) return;
  const over = (one("#outcome", fresh) && !one("#outcome", old)) || (fresh.matches(".over") && !old.matches(".over"));
  if (isBusy(old) && !over) return;
  const inside = old.contains(document.activeElement) && document.activeElement;
  const open = all("details", old).map((part) => part.open);
  old.replaceChildren(...[...fresh.childNodes].map((node) => document.importNode(node, true)));
  const isSelected = old.classList.contains("selected");
  old.className = fresh.className;
  old.classList.toggle("selected", isSelected);
  if (over) {
    if (inside) one("#outcome")?.focus();
    return;
  }
  all("details", old).forEach((part, i) => (part.open = open[i] ?? part.open));
  if (inside) (all("a, button, summary", old).find((node) => node.textContent === inside.textContent) ?? one("#main")).focus({ preventScroll: true });
}

/** Bring this page up to date without moving what is read: rows keep their places, and new ones come last. */
function merge(fresh) {
  document.title = fresh.title;
  document.body.dataset.mark = fresh.body.dataset.mark ?? "";
  for (const part of all("[data-live][id]")) {
    const now = fresh.getElementById(part.id);
    if (now) renew(part, now);
  }
  follow(fresh);
  const rows = one("[data-rows]");
  if (!rows) return;
  let added = 0;
  for (const row of all("[data-rows] > li", fresh)) {
    const old = document.getElementById(row.id);
    if (old && !held.has(old.id)) renew(old, row);
    if (!old) {
      rows.append(document.importNode(row, true));
      added += 1;
    }
  }
  if (added) say(added === 1 ? "A new call waits, at the end of the list." : `${added} new calls wait, at the end of the list.`);
}

/** Of a session's page: put new events at the end, and renew those whose state changed. */
function follow(fresh) {
  const story = one("[data-story]");
  const isAtEnd = innerHeight + scrollY > document.body.scrollHeight - 120;
  for (const entry of story ? all("[data-story] > li", fresh) : []) {
    const old = document.getElementById(entry.id);
    if (old) renew(old, entry);
    else story.append(document.importNode(entry, true));
  }
  if (story && one("#writing") && all("li.agent", story).some(({ id }) => id === one("#writing").dataset.event)) one("#writing").hidden = true;
  if (story && isAtEnd) scrollTo(0, document.body.scrollHeight);
}

/** Show the agent's text while it is written; the stored message takes its place. */
function read(url) {
  const writing = one("#writing");
  const deltas = new EventSource(`${url}?event_deltas[]=agent.message`);
  deltas.addEventListener("event_start", ({ data }) => {
    writing.dataset.event = JSON.parse(data).event.id;
    writing.textContent = "";
    writing.hidden = false;
  });
  deltas.addEventListener("event_delta", ({ data }) => {
    const { event_id, delta } = JSON.parse(data);
    if (event_id === writing.dataset.event) writing.append(delta.content?.text ?? "");
  });
  for (const kind of STORED) deltas.addEventListener(kind, refreshSoon);
  return deltas;
}

async function refresh() {
  clearTimeout(timer);
  timer = undefined;
  const url = new URL(location.href);
  const shown = all("[data-rows] > li").map((row) => row.id);
  if (shown.length) url.searchParams.set("keep", shown.join(" "));
  url.searchParams.delete("decided");
  const here = location.href;
  try {
    const { status, page } = await load(url);
    if (status === 200 && here === location.href) merge(page);
  } catch {
    // The stream says that the server is away.
  }
}

/** Several changes in a moment are one look, at a time of each page's own. */
const refreshSoon = () => (timer ??= setTimeout(refresh, SOON * (0.5 + Math.random())));

function listen() {
  const { stream, mark, events } = document.body.dataset;
  source?.close();
  clearTimeout(listen.again);
  if (!stream) return;
  if (document.hidden) {
    // A browser has six connections to a server: a page that nobody sees leaves them to others.
    listen.again = setTimeout(() => refresh().then(listen), 30000);
    return;
  }
  // A session's page hears of its approvals by the session's own events.
  source = events ? read(events) : new EventSource(`${stream}?mark=${encodeURIComponent(mark ?? "")}`);
  source.onopen = () => {
    pause = 1000;
    if (one("#lost") || events) refresh();
    one("#lost")?.remove();
  };
  source.addEventListener("changed", refreshSoon);
  source.onerror = () => {
    source.close();
    if (!one("#lost")) say("The connection is lost. This page tries again by itself.", { id: "lost", stays: true });
    listen.again = setTimeout(listen, pause * (0.5 + Math.random()));
    pause = Math.min(pause * 2, 30000);
  };
}

// Words

/** Say something in a corner; to screen readers too. Returns the toast. */
function say(words, { id = "", stays = false, button } = {}) {
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.id = id;
  const text = document.createElement("span");
  text.textContent = words;
  toast.append(text, ...(button ? [button] : []));
  one("#toasts").append(toast);
  if (!stays) setTimeout(() => toast.remove(), 6000);
  return toast;
}

function tellTimes() {
  const now = Date.now() + clock;
  for (const time of all("time[data-moment]")) {
    const seconds = Math.round((Date.parse(time.dateTime) - now) / 1000) * (time.dataset.moment === "left" ? 1 : -1);
    const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ["second", 1];
    const count = Math.max(Math.floor(seconds / size), 0);
    const span = `${count} ${unit}${count === 1 ? "" : "s"}`;
    const words = time.dataset.moment === "left" ? (seconds <= 0 ? "overdue" : `${span} left`) : seconds < 5 ? "just now" : `${span} ago`;
    if (time.textContent !== words) time.textContent = words;
  }
}

// Forms

/** Show another page in the place of this one, without leaving it: what is held stays held. */
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

async function go(url, isNew = true) {
  try {
    show(await load(url), isNew);
  } catch {
    location.assign(url);
  }
}

async function send(form, body, isQuiet) {
  const all_buttons = all("button", form);
  for (const button of all_buttons) button.disabled = true;
  try {
    const answer = await load(form.action, body);
    const refusal = one("#refusal, .narrow p", answer.page)?.textContent;
    const told = one("#decided", answer.page)?.textContent.trim();
    if (isQuiet && told && answer.status < 400) say(told);
    if (answer.status >= 400 && (isQuiet || document.body.dataset.page === "list")) {
      say(`Not decided. ${refusal}`);
      await refresh();
    } else if (isQuiet || document.body.dataset.page === "list") {
      await refresh();
    } else show(answer, answer.status < 400);
  } catch (error) {
    say(`${error.message} Nothing is known to be decided; look again.`);
  }
  for (const button of all_buttons) button.disabled = false;
}

/** Wait five seconds before an allow is sent. */
function hold(form, submitter, body) {
  const ids = form.id === "several" ? body.getAll("approval").map((mark) => mark.split(" ")[0]) : [form.closest("[data-card]").id];
  const undo = document.createElement("button");
  undo.textContent = "Undo";
  const count = ids.length > 1 ? `Allowing ${ids.length} calls once` : submitter.dataset.undo;
  const toast = say(count, { stays: true, button: undo });
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
  }, HOLD) };
  undo.addEventListener("click", () => {
    release();
    say("Undone. Nothing was decided.");
    if (document.body.dataset.page === "card" && !document.getElementById(ids[0])) go(`/inbox/approvals/${ids[0]}`);
  });
  for (const id of ids) held.set(id, entry);
  if (document.body.dataset.page === "card") {
    go(`/inbox/next?after=${ids[0]}&held=${encodeURIComponent([...held.keys()].join(" "))}`);
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
  body.set("held", [...held.keys()].join(" "));
  if (submitter?.dataset.undo) hold(form, submitter, body);
  else send(form, body, false);
});

// What was not sent when the page is left is not sent at all, also if the browser shows the page again.
addEventListener("pagehide", () => [...held.values()].forEach(({ release }) => release()));
addEventListener("pageshow", (event) => event.persisted && refresh());
addEventListener("popstate", () => go(location.href, false));
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-next]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  go(`${link.href}&held=${encodeURIComponent([...held.keys()].join(" "))}`);
});
document.addEventListener("change", () => {
  const chosen = all("[form=several]:checked").length;
  if (one("#chosen")) one("#chosen").textContent = chosen ? `${chosen} of ${all("input[form=several]").length}` : "mark calls to decide them together";
});

// Keys

/** Select the next row, or the one before. */
function select(step) {
  const rows = all("[data-rows] > li").filter((row) => !row.inert);
  const at = rows.findIndex((row) => row.classList.contains("selected"));
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + step, 0), rows.length - 1)];
  rows[at]?.classList.remove("selected");
  next?.classList.add("selected");
  one(".title", next)?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

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
  if (!card && "adex".includes(event.key)) return;
  event.preventDefault();
  KEYS[event.key](card);
});

/** What each page begins with. */
function start() {
  if (document.body.dataset.now) clock = Date.parse(document.body.dataset.now) - Date.now();
  listen();
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refreshSoon();
  listen();
});
setInterval(tellTimes, 5000);
start();
