// Refreshes the page when the page's stream tells of a change.

import { merge } from "./merge.js";
import { all, load, one, say } from "./page.js";
import { refreshPane } from "./split.js";

const REFRESH_MS = 400;
const HIDDEN_REFRESH_MS = 30000;
/** Rows and a card whose calls run are looked at again after this time, and then after longer and longer times. */
const OPEN_REFRESH_MS = 1000;
const LONGEST_OPEN_REFRESH_MS = 30000;
const OPEN = "[data-rows] > li.open, .came-of.waits";
const STORED_EVENTS = [
  "agent.message", "agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use", "agent.tool_result", "agent.mcp_tool_result",
  "user.message", "user.tool_confirmation", "user.tool_result", "user.custom_tool_result", "user.interrupt",
  "agent.thread_message_sent", "agent.thread_message_received", "session.thread_created", "session.thread_status_running",
  "session.thread_status_idle", "session.thread_status_rescheduled", "session.thread_status_terminated", "session.error", "session.status_idle", "session.status_running", "session.status_terminated", "session.deleted",
];
let source;
let retryMs = 1000;
let refreshTimer;
let openTimer;
let openMs = OPEN_REFRESH_MS;
let listenTimer;

/** Open a session's stream. The page shows the agent's text while the agent writes, and refreshes itself at each stored event. */
function readSession(url) {
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
  for (const kind of STORED_EVENTS) deltas.addEventListener(kind, refreshSoon);
  return deltas;
}

/** Load this page again, and merge the new content. Rows that the page shows stay, also after their decision. */
export async function refresh() {
  clearTimeout(refreshTimer);
  refreshTimer = undefined;
  const { address } = document.body.dataset;
  const url = new URL(address && address !== location.pathname ? address : location.href, location.href); // a refused form has an address of its own
  const shown = all("[data-rows] > li").map((row) => row.id);
  if (shown.length) url.searchParams.set("keep", shown.join(" "));
  if (document.body.dataset.newest) url.searchParams.set("since", document.body.dataset.newest);
  url.searchParams.delete("decided");
  const here = location.href;
  try {
    const { status, page } = await load(url);
    if (status === 200 && here === location.href) merge(page);
    await refreshPane();
  } catch {
    // The stream's error handler says that the connection is lost.
  }
  refreshOpen();
}

/** Refresh later if a call is still to run: the page's stream tells of decisions alone. */
function refreshOpen() {
  clearTimeout(openTimer);
  openMs = one(OPEN) ? Math.min(openMs * 1.5, LONGEST_OPEN_REFRESH_MS) : OPEN_REFRESH_MS;
  if (one(OPEN) && !document.hidden) openTimer = setTimeout(refresh, openMs);
}

/** Refresh once for several changes in quick succession. The delay is random, so that not all pages ask the server at once. */
export const refreshSoon = () => (refreshTimer ??= setTimeout(refresh, REFRESH_MS * (0.5 + Math.random())));

/** Open the page's stream, in place of the stream before. A hidden page has no stream, and refreshes itself every 30 seconds. */
export function listen() {
  const { stream, mark, events } = document.body.dataset;
  source?.close();
  clearTimeout(listenTimer);
  if (!stream) return;
  if (document.hidden) {
    // A browser opens at most six connections to a server. Hidden pages leave them to visible pages.
    listenTimer = setTimeout(() => refresh().then(listen), HIDDEN_REFRESH_MS);
    return;
  }
  // A session's own events tell of its approvals, so its page needs no other stream.
  source = events ? readSession(events) : new EventSource(`${stream}?mark=${encodeURIComponent(mark ?? "")}`);
  source.onopen = () => {
    retryMs = 1000;
    if (one("#lost") || events) refresh();
    one("#lost")?.remove();
  };
  source.addEventListener("changed", refreshSoon);
  refreshOpen();
  const opened = source;
  source.onerror = async () => {
    opened.close();
    if (events) await refresh();
    if (events && !document.body.dataset.events) return listen(); // no event follows in a session that has ended
    if (!one("#lost")) say("The connection is lost. This page tries again by itself.", { id: "lost", stays: true });
    listenTimer = setTimeout(listen, retryMs * (0.5 + Math.random()));
    retryMs = Math.min(retryMs * 2, 30000);
  };
}
