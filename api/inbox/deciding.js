// The answers that an approval can be given, by its kind; each is bound to the input that was shown.

import { ask } from "./asking.js";
import { answers, declined, questions } from "./questions.js";
import { exact, h, json, REACHES, visible } from "./words.js";

const HOUR = 3600;
const DAY = 24 * HOUR;
/** Milliseconds of rest after which what somebody types is looked at. */
const TYPING = 400;
const TIMES = [[HOUR, "1 hour"], [8 * HOUR, "8 hours"], [DAY, "1 day"], [7 * DAY, "7 days"]];

/** The forms. `update` brings the page up to date once something was done; why it was not goes into `fault`. */
export function deciding(approval, update, fault) {
  const path = `v1/approvals/${approval.id}`;
  const all = h("div");

  async function act(verb, body) {
    fault.replaceChildren();
    const buttons = [...all.querySelectorAll("button")];
    for (const button of buttons) button.disabled = true;
    try {
      await ask("POST", `${path}/${verb}`, { body });
    } catch (error) {
      fault.replaceChildren(error.message);
      fault.scrollIntoView({ block: "nearest" });
    }
    await update().catch(() => {}); // what fails there, the next poll says
    for (const button of buttons) button.disabled = false;
  }
  const decide = (decision) => act("decision", { ...decision, expected_input_sha256: approval.input_sha256 });

  const refuse = (words) => fault.replaceChildren(words);
  const forms = { tool_call: ofCall, unknown_outcome: ofUnknown, question: ofQuestion };
  all.append(...forms[approval.kind](approval, decide, refuse), more((body) => act("extend", body)));
  return all;
}

/** A form that calls `act` when it is sent, with the value of the button that was pressed. */
function form(tag, words, act, ...parts) {
  const send = (event) => {
    event.preventDefault();
    act(event.submitter?.value);
  };
  const title = tag === "details" ? h("summary", {}, words) : h("legend", {}, words);
  return h("form", { onsubmit: send }, h(tag, {}, title, parts));
}

const times = (label, ...before) =>
  h("select", { "aria-label": label }, [...before, ...TIMES].map(([value, words]) => h("option", { value }, words)));

const button = (kind, words, value) => h("button", { class: kind, value }, words);

function ofCall(approval, decide, refuse) {
  const message = h("textarea", { placeholder: "Why, for the agent (may be left empty)", "aria-label": "Message to the agent" });
  const edited = h("textarea", { class: "input", "aria-label": "Input" });
  edited.value = json(approval.input);
  const result = h("textarea", { required: true, "aria-label": "The result" });
  const deny = (how) => {
    const why = message.value.trim() && { deny_message: message.value };
    decide({ result: "deny", ...why, ...(how === "end" && { interrupt: true }) });
  };
  const edit = () => {
    let input;
    try {
      input = JSON.parse(edited.value, exact);
    } catch (error) {
      return refuse(`The input is no JSON: ${error.message}`);
    }
    if (json(input) === json(approval.input)) return refuse("The input is as it was.");
    const isObject = input !== null && typeof input === "object" && !Array.isArray(input);
    if (!isObject) return refuse("The input is no JSON object.");
    decide({ result: "allow", updated_input: input });
  };
  return [
    allowing(approval, decide),
    form("fieldset", "Deny", deny, message, button("bad", "Deny"), button("bad", "Deny and end the run", "end")),
    form("details", "Edit the input, then allow", edit, edited, button("good", "Allow this instead")),
    form("details", "Answer in the tool's place", () => decide({ result: "allow", respond: result.value }), result,
      button("good", "Give this as the result")),
  ];
}

/** Allow once, or beyond: then what the grant would cover is said before it is given. */
function allowing(approval, decide) {
  const radio = (name, value, words, checked) =>
    h("label", {}, h("input", { type: "radio", name, value, checked }), " ", words);
  const rule = h("input", { type: "text", placeholder: "bash(git status *)", "aria-label": "Rule" });
  const uses = h("input", { type: "number", min: 1, placeholder: "any number", "aria-label": "Uses" });
  const lives = times("How long", ["", "as long as usual"]);
  const covered = h("div", { class: "notice", role: "status" });
  const beyond = h("fieldset", { class: "inner", hidden: true, disabled: true },
    radio("match", "tool", visible(approval.covers.tool), true),
    radio("match", "exact", visible(approval.covers.exact)),
    radio("match", "rule", ["what fits a rule: ", rule]),
    h("label", {}, "For so many calls: ", uses), h("label", {}, "For so long: ", lives));
  const made = form("fieldset", "Allow", give,
    Object.entries(REACHES).map(([scope, words]) => radio("scope", scope, `${scope}: ${words}`, scope === "once")),
    beyond, button("good", "Allow"), covered);
  const picked = (name) => made.elements[name].value;

  function reach() {
    if (picked("scope") === "once") return {};
    return {
      scope: picked("scope"),
      match: picked("match") === "rule" ? rule.value : picked("match"),
      ...(uses.value && { max_uses: Number(uses.value) }),
      ...(lives.value && { expires_in_seconds: Number(lives.value) }),
    };
  }

  let wanted = ""; // what was asked about last
  let said = ""; // what the words on the page are about
  let seen = ""; // what they were about when a hand last came down
  let typing;
  const about = ({ scope, match }) => JSON.stringify([scope, match]);

  /** Say what it would cover. The place is below the button, which must not move away from under a hand. */
  async function preview() {
    const { scope, match } = reach();
    const mine = about({ scope, match });
    wanted = mine;
    said = "";
    beyond.hidden = beyond.disabled = !scope;
    covered.replaceChildren();
    if (!scope) return;
    if (!match) return covered.replaceChildren("Write the rule that calls are to fit.");
    let words;
    let mayGive = "";
    try {
      const { covers, waiting } = await ask("POST", `v1/approvals/${approval.id}/preview`, { body: { scope, match } });
      const others = waiting ? ` ${waiting} more that ${waiting === 1 ? "waits" : "wait"} now will be allowed by it.` : "";
      words = `It covers ${visible(covers)}, ${REACHES[scope]}.${others}`;
      mayGive = mine;
    } catch (error) {
      words = error.message;
    }
    if (wanted !== mine) return;
    covered.replaceChildren(words);
    said = mayGive;
  }

  /** What had not been said when the hand came down is not given. */
  async function give() {
    if (reach().scope && seen !== about(reach())) await preview();
    else decide({ result: "allow", ...reach() });
  }
  for (const hand of ["pointerdown", "keydown"]) made.addEventListener(hand, () => (seen = said));
  made.addEventListener("input", ({ target }) => {
    clearTimeout(typing);
    if (target === rule) {
      made.elements.match.value = "rule";
      covered.replaceChildren();
      typing = setTimeout(preview, TYPING);
    } else if (target !== uses && target !== lives) preview();
  });
  return made;
}

function ofUnknown(_approval, decide) {
  const placeholder = "What the tool gave, or would have given";
  const result = h("textarea", { required: true, placeholder, "aria-label": "The result" });
  const again = () => {
    if (confirm("Run it again, though it may have happened already?")) decide({ outcome: "rerun" });
  };
  return [
    form("fieldset", "It happened", () => decide({ outcome: "happened", result: result.value }), result,
      button("good", "Tell the agent this result")),
    form("fieldset", "Run it again", again, "It may take effect twice.", h("br"), button("bad", "Run it again")),
    form("fieldset", "Give up", () => decide({ outcome: "give_up" }), "The agent is told that nobody knows.", h("br"),
      button("bad", "Give up")),
  ];
}

function ofQuestion(approval, decide, refuse) {
  const fields = questions(approval.questions);
  const answer = (how) => {
    if (how === "deny") return decide({ result: "deny" });
    try {
      decide({ result: "allow", answers: how === "decline" ? declined(approval.questions) : answers(fields) });
    } catch (error) {
      refuse(error.message);
    }
  };
  return [
    form("fieldset", "It asks, before it goes on", answer, fields.map((field) => field.shown),
      button("good", "Answer, and let it go on"), button("", "Decline to answer", "decline"),
      button("bad", "Deny: it does not go on", "deny")),
  ];
}

function more(extend) {
  const seconds = times("From now");
  return form("details", "More time", () => extend({ seconds: Number(seconds.value) }), "The deadline is then, from now: ", seconds,
    button("", "Extend"));
}
