// All approvals, or those that wait: the longest waiting first. Several calls can be decided together.

import { ask, inTurn, list } from "./asking.js";
import { h, input, isWhatRuns, notice, timeout, UNSOUND, visible, when } from "./words.js";

const STATUSES = ["pending", "allowed", "denied", "answered", "expired", "cancelled"];
const KINDS = { unknown_outcome: "What became of it?", question: "It asks back:" };
const FILTERS = ["status", "tool", "session_id", "agent_id"];

/** Draws the list that `params` asks for. Returns what brings it up to date. */
export function showList(view, params, signal) {
  const status = STATUSES.includes(params.get("status")) ? params.get("status") : "pending";
  const query = { ...Object.fromEntries(FILTERS.filter((f) => params.get(f)).map((f) => [f, params.get(f)])), status };
  const known = new Map();
  const rows = h("ul", { class: "rows" });
  const nothing = h("p", { hidden: true }, status === "pending" ? "Nothing waits for a decision." : "None.");
  const further = h("button", { hidden: true, onclick: showMore }, "Show more");
  const together = h("div", { hidden: true });
  const fault = notice();
  let pages = 1;

  function showMore() {
    pages++;
    update().catch(() => {}); // what fails there, the next poll says
  }

  const update = inTurn(async () => {
    const found = await list("v1/approvals", { ...query, order: status === "pending" ? "asc" : "desc" }, pages);
    if (signal.aborted) return;
    for (const approval of found.rows) {
      if (!known.has(approval.id)) known.set(approval.id, line(approval, await isWhatRuns(approval)));
    }
    if (signal.aborted) return;
    draw(found.rows);
    nothing.hidden = found.rows.length > 0;
    further.hidden = !found.more;
    document.title = status === "pending" ? `(${found.rows.length}${found.more ? "+" : ""}) Assent` : "Assent";
    count();
  });

  /** Rows that stay are left as they are, so that nothing moves under a hand. */
  function draw(found) {
    const ids = new Set(found.map((row) => row.id));
    for (const [id, { row }] of known) {
      if (ids.has(id)) continue;
      row.remove();
      known.delete(id);
    }
    let at = rows.firstChild;
    for (const approval of found) {
      const { row, tell } = known.get(approval.id);
      if (row === at) at = at.nextSibling;
      else rows.insertBefore(row, at);
      tell(approval);
    }
  }

  const chosen = () => [...rows.querySelectorAll("input:checked")];

  function count() {
    const n = chosen().length;
    together.hidden = n === 0;
    for (const button of together.querySelectorAll("button")) button.textContent = `${button.name} ${n}`;
  }

  async function decide(result) {
    const decisions = chosen().map((box) => ({ approval_id: box.value, result, expected_input_sha256: box.dataset.sha256 }));
    for (const button of together.children) button.disabled = true;
    try {
      await ask("POST", "v1/approvals/decisions", { body: { decisions } });
      fault.replaceChildren();
    } catch (error) {
      fault.replaceChildren(error.message);
    }
    for (const button of together.children) button.disabled = false;
    await update().catch(() => {}); // what fails there, the next poll says
  }

  together.append(
    h("button", { class: "good", name: "Allow", onclick: () => decide("allow") }),
    h("button", { class: "bad", name: "Deny", onclick: () => decide("deny") }),
  );
  rows.addEventListener("change", () => {
    fault.replaceChildren();
    count();
  });
  const held = document.activeElement?.name;
  view.replaceChildren(h("h1", {}, "Approvals"), filters(query), rows, nothing, further, fault, together);
  if (FILTERS.includes(held)) view.querySelector(`[name=${held}]`)?.focus();
  return update;
}

function filters(query) {
  const status = h("select", { name: "status" }, STATUSES.map((s) => h("option", { selected: s === query.status }, s)));
  const tool = h("input", { type: "text", name: "tool", value: query.tool, placeholder: "any tool" });
  const show = (event) => {
    event.preventDefault();
    const wanted = { ...query, status: status.value, tool: tool.value.trim() };
    location.hash = `#/?${new URLSearchParams(Object.entries(wanted).filter(([, value]) => value))}`;
  };
  const only = ["session_id", "agent_id"].filter((name) => query[name]).map((name) => `Only of ${visible(query[name])}. `);
  return h("form", { class: "filters", onsubmit: show, onchange: show }, status, tool,
    only.length > 0 && h("p", {}, only, h("a", { href: "#/" }, "Show all")));
}

/** A row, and what brings its times up to date. */
function line(approval, isSound) {
  const details = h("details", {}, h("summary", {}, visible(approval.tool)), input(approval));
  const mayChoose = approval.status === "pending" && approval.kind === "tool_call" && isSound;
  const times = h("small");
  const box = h("input", {
    type: "checkbox", value: approval.id, "data-sha256": approval.input_sha256, "aria-label": `Choose ${visible(approval.prompt)}`,
    onchange() {
      if (box.checked) details.open = true;
    },
  });
  const row = h("li", {},
    h("span", {}, mayChoose && box),
    h("div", {},
      !isSound && h("p", { class: "loud" }, UNSOUND),
      KINDS[approval.kind] && h("span", { class: "loud" }, KINDS[approval.kind], " "),
      h("a", { href: `#/${approval.id}` }, visible(approval.prompt, { lines: true })),
      details,
      times));
  const tell = (now) =>
    times.replaceChildren("asked ", when(now.created_at), ", ", ...(now.status === "pending" ? due(now) : ended(now)));
  return { row, tell };
}

const due = (approval) => ["deadline ", when(approval.expires_at), `, ${timeout(approval)}`];

const ended = ({ status, decided_at, decided_by, expires_at }) =>
  [`${status} `, when(decided_at ?? expires_at), decided_by ? ` by ${visible(decided_by)}` : ""];
