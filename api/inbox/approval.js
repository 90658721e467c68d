// One approval: the question, what led to it, the answer, and what came of it.

import { ask, inTurn, list } from "./asking.js";
import { deciding } from "./deciding.js";
import { anew, grant, h, input, isWhatRuns, json, narrated, notice, texts, timeout, UNSOUND, visible, when } from "./words.js";

const TOLD = 40;

/** Draws the approval. Returns what brings it up to date. */
export function showApproval(view, id, signal) {
  const question = h("section");
  const answer = h("section");
  const fault = notice();
  const told = h("section");
  const deadline = h("dd");
  let drawn = "";
  let last = "";
  view.replaceChildren(question, answer, fault, told);

  const update = inTurn(async () => {
    const approval = await ask("GET", `v1/approvals/${encodeURIComponent(id)}`);
    if (signal.aborted) return;
    if (!drawn) question.replaceChildren(...(await asked(approval, deadline)));
    document.title = `${visible(approval.prompt).slice(0, 60)} - Assent`;
    deadline.replaceChildren(when(approval.expires_at), approval.status === "pending" ? `, ${timeout(approval)}` : "");
    if (drawn !== approval.status) {
      const open = approval.status === "pending" && (await isWhatRuns(approval));
      answer.replaceChildren(...(open ? [deciding(approval, update, fault)] : await outcome(approval)));
      drawn = approval.status;
    }
    const events = await latest(approval.session_id);
    if (events.at(-1)?.id !== last) told.replaceChildren(...story(events));
    last = events.at(-1)?.id;
    anew(view);
  });
  return update;
}

async function asked(approval, deadline) {
  const { agent, title } = await ask("GET", `v1/sessions/${approval.session_id}`);
  const shown = h("div", {}, input(approval));
  const fault = notice();
  const exact = h("details", {}, await exactly(approval));
  const reveal = async ({ target }) => {
    target.disabled = true;
    try {
      const found = await ask("GET", `v1/approvals/${approval.id}`, { query: { reveal: true } });
      shown.replaceChildren(input(found));
      exact.replaceChildren(...(await exactly(found)));
    } catch (error) {
      fault.replaceChildren(error.message);
      target.disabled = false;
    }
  };
  return [
    approval.kind === "unknown_outcome" && h("p", { class: "loud" }, "It began, and nobody knows whether it took effect."),
    h("h1", {}, visible(approval.prompt, { lines: true })),
    !(await isWhatRuns(approval)) && h("p", { class: "loud" }, UNSOUND),
    shown,
    approval.masked.length > 0 && h("p", {},
      `Hidden, as secrets: ${approval.masked.map((path) => visible(path)).join(", ")}. What runs has them. `,
      h("button", { onclick: reveal }, "Show them (this is audited)"), fault),
    h("dl", {},
      fact("tool", visible(approval.tool)),
      fact("agent", visible(agent.name ?? agent.id)),
      fact("session", h("a", { href: `#/?session_id=${approval.session_id}` }, visible(title || approval.session_id))),
      fact("asked", when(approval.created_at), `, by rule ${visible(approval.rule)}`),
      h("dt", {}, "deadline"), deadline,
      approval.annotations && fact("its own word", visible(JSON.stringify(approval.annotations)))),
    attempt(approval.attempt),
    exact,
  ].filter(Boolean);
}

/** The input as its hash sees it, and how far that hash was checked. */
async function exactly(approval) {
  const masked = approval.masked.length > 0;
  const checked = masked ? "of the input with its secrets" : !crypto.subtle ? "not checked: this page did not come over HTTPS"
    : (await isWhatRuns(approval)) ? "checked" : "of another input";
  return [
    h("summary", {}, masked ? "What is decided, without its secrets" : "Exactly what is decided"),
    h("pre", { class: "exact" }, visible(approval.input_canonical)),
    h("small", {}, `SHA-256 ${approval.input_sha256} (${checked})`),
  ];
}

const fact = (name, ...said) => [h("dt", {}, name), h("dd", {}, said)];

function attempt(known) {
  if (!known) return null;
  return h("details", { open: true },
    h("summary", {}, `Attempt ${known.number}, by ${visible(known.worker ?? "nobody")}, began `, when(known.started_at)),
    h("pre", {}, visible(known.output, { lines: true }) || "It has printed nothing."));
}

async function outcome(approval) {
  if (approval.status === "pending") return [];
  const said = approval.decision ?? {};
  const instead = approval.decided_input;
  const { rows: [next] } = await list("v1/approvals", { status: "pending", limit: 1 }, 1);
  return [
    h("div", { class: "notice", role: "status" },
      h("strong", {}, approval.status), approval.decided_by && ` by ${visible(approval.decided_by)}`,
      approval.decided_at && [", ", when(approval.decided_at)], ".",
      said.outcome && h("p", {}, `Outcome: ${said.outcome}`),
      said.interrupt && h("p", {}, "The run ended."),
      said.respond && h("p", {}, `In the tool's place: ${visible(texts(said.respond), { lines: true })}`),
      said.content && h("p", {}, `What it gave: ${visible(texts(said.content), { lines: true })}`),
      said.deny_message && h("p", {}, `To the agent: ${visible(said.deny_message, { lines: true })}`),
      instead && [h("p", {}, "This input instead:"), h("pre", {}, visible(json(instead), { lines: true }))],
      approval.grant && h("p", {}, `It gave a grant: ${grant(approval.grant)}.`)),
    h("p", {}, next ? ["Next: ", h("a", { href: `#/${next.id}` }, visible(next.prompt))] : "Nothing else waits."),
  ];
}

async function latest(session_id) {
  const query = { order: "desc", limit: TOLD };
  return (await ask("GET", `v1/sessions/${session_id}/events`, { query })).data.reverse();
}

function story(events) {
  const lines = events.map(narrated).filter((line) => line?.[1]);
  return [
    h("h2", {}, "The session so far"),
    h("div", { class: "told" }, lines.map(([who, what]) => [h("small", {}, who), h("pre", {}, visible(what, { lines: true }))])),
  ];
}
