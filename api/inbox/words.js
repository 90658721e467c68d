// What is shown, in words. Whatever a model, a tool or a person wrote becomes text here, never markup.

import { now } from "./asking.js";

export const REACHES = { once: "this call", session: "for the rest of this session", always: "in every session of this agent" };
const TIMEOUTS = { deny: "then it is not run", end_run: "then the run ends", allow: "then it is allowed" };
export const UNSOUND = "The input shown is not the one that would run; do not decide it here.";
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/gu;
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const RELATIVE = new Intl.RelativeTimeFormat("en");

/** An element: `h("a", { href: "#/" }, "Inbox")`. Children are elements or text; what is null or false is left out. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return made;
}

/** A place for words on what went wrong: nothing is seen of it while it is empty. */
export const notice = () => h("div", { class: "notice", role: "alert" });

/** The text with every character spelled out that would reorder or hide others; `lines` leaves line ends and tabs. */
export function visible(text, { lines = false } = {}) {
  const plain = lines ? " \n\t" : " ";
  const spelled = (c) => `<U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`;
  return String(text).replace(HIDDEN, (c) => (plain.includes(c) ? c : spelled(c)));
}

/** A JSON value in lines, fit to be edited: what is hidden in its strings is an escape. */
export function json(value) {
  const escaped = (c) => [...Array(c.length)].map((_, i) => `\\u${c.charCodeAt(i).toString(16).padStart(4, "0")}`).join("");
  return JSON.stringify(value, null, 2).replace(HIDDEN, (c) => (" \n".includes(c) ? c : escaped(c)));
}

/** For JSON.parse: the value as it is. Throws on a number that is too large for JavaScript, which would be sent as null. */
export function exact(name, value) {
  if (value === Infinity || value === -Infinity) throw new Error(`${name || "it"} has a number that is too large.`);
  return value;
}

/** How long ago, or in how long. */
export function when(time) {
  const seconds = Math.round((Date.parse(time) - now()) / 1000);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? UNITS.at(-1);
  return h("time", { datetime: time, title: time }, RELATIVE.format(Math.trunc(seconds / size), unit));
}

/** Have the times in there be as long ago as they are by now. */
export function anew(root) {
  for (const time of root.querySelectorAll("time")) time.replaceWith(when(time.dateTime));
}

/** What becomes of an approval that nobody decides. */
export const timeout = (approval) => (approval.kind === "tool_call" ? TIMEOUTS[approval.on_timeout] : "then it is given up");

/** A call's input, field by field: texts as they are, all else as JSON. */
export function input(approval) {
  const given = JSON.parse(approval.input_canonical);
  const fields = Object.entries(given).map(([name, value]) => [
    h("dt", {}, visible(name), isMistakable(value) && h("small", {}, " (text)")),
    h("dd", {}, h("pre", {}, visible(typeof value === "string" ? value : json(value), { lines: true }))),
  ]);
  return fields.length ? h("dl", { class: "input" }, fields) : h("p", {}, "No input.");
}

/** Whether it is a text that looks like another kind of value. */
function isMistakable(value) {
  if (typeof value !== "string") return false;
  try {
    JSON.parse(value);
  } catch {
    return value === "";
  }
  return true;
}

/** Whether the input shown is the one that its hash stands for; a page that did not come over HTTPS cannot know. */
export async function isWhatRuns(approval) {
  if (approval.masked.length > 0 || !crypto.subtle) return true;
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(approval.input_canonical));
  return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("") === approval.input_sha256;
}

/** A grant in a line. */
export function grant(given) {
  const reach = given.scope === "session" ? `in session ${given.session_id}` : `in every session of ${given.agent_id}`;
  const limits = [given.expires_at && `until ${given.expires_at}`, given.max_uses && `${given.uses} of ${given.max_uses} uses`];
  const over = given.live ? [] : [given.revoked_at ? `revoked by ${given.revoked_by}` : "over"];
  return [given.covers, reach, ...limits.filter(Boolean), ...over].map((part) => visible(part)).join(", ");
}

/** What the text blocks say. */
export const texts = (blocks) => blocks.filter((block) => block.type === "text").map((block) => block.text).join("\n");

/** What an event says to an onlooker: who, and what; nothing for most. */
export function narrated(event) {
  const said = texts(event.content ?? []);
  switch (event.type) {
    case "user.message":
      return ["person", said];
    case "agent.message":
      return ["agent", said];
    case "agent.tool_use":
    case "agent.mcp_tool_use":
    case "agent.custom_tool_use":
      return ["agent wants", `${event.name} ${json(event.input)}`];
    case "user.tool_confirmation":
      return ["decision", [event.result, event.deny_message].filter(Boolean).join(": ")];
    case "agent.tool_result":
    case "agent.mcp_tool_result":
    case "user.tool_result":
    case "user.custom_tool_result":
      return [event.is_error ? "error" : "result", said];
    case "session.error":
      return ["error", event.error.message];
    case "session.status_idle":
      return ["session", event.stop_reason.type === "requires_action" ? "waits" : `idle: ${event.stop_reason.type}`];
    case "session.status_terminated":
      return ["session", "has ended"];
  }
  return null;
}
