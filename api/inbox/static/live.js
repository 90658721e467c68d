// Follows changes: the page's stream tells the page to refresh itself.

import { merge } from "./merge.js";
import { all, load, one, say } from "./page.js";

const SOON = 400;
const STORED = ["agent.message", "agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use", "agent.tool_result", "agent.mcp_tool_result",
  "user.message", "user.tool_confirmation", "user.tool_result", "user.custom_tool_result", "user.interrupt",
  "session.error", "session.status_idle", "session.status_running", "session.status_terminated", "session.deleted"];
let source;
let pause = 1000;
let timer;

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

export async function refresh() {
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
    // The stream's error handler says that the server is away.
  }
}

/** Refresh once for several changes in a moment. Each page waits a random time, so that not all ask the server at once. */
export const refreshSoon = () => (timer ??= setTimeout(refresh, SOON * (0.5 + Math.random())));

export function listen() {
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
