// What a tool asks before it goes on: a form, field by field, or a page to visit.

import { exact, h, visible } from "./words.js";

/** For each question its fields (`shown`), and what they say (`said`, which throws where that is nothing to send). */
export function questions(asked) {
  return Object.entries(asked).map(([key, question]) => ("url" in question ? visit(key, question) : filled(key, question)));
}

/** An answer to each question, by its key. */
export const answers = (fields) => Object.fromEntries(fields.map(({ key, said }) => [key, said()]));

/** A no to all of them; the tool goes on as it sees fit. */
export const declined = (asked) => Object.fromEntries(Object.keys(asked).map((key) => [key, { action: "decline" }]));

function visit(key, { message, url }) {
  const done = h("input", { type: "checkbox" });
  const safe = /^https?:\/\//i.test(url);
  const link = h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, visible(url));
  return {
    key,
    shown: h("div", {}, h("p", {}, visible(message, { lines: true })), safe ? link : h("code", {}, visible(url)),
      h("label", {}, done, " I have been there")),
    said() {
      if (!done.checked) throw new Error("Go there first and say so, or decline.");
      return { action: "accept" };
    },
  };
}

function filled(key, { message, schema }) {
  const parts = schema.properties ?? {};
  const required = (schema.required ?? []).filter((name) => Object.hasOwn(parts, name));
  // What is required has an order; of the rest, stored JSON keeps none.
  const names = [...required, ...Object.keys(parts).filter((name) => !required.includes(name)).sort()];
  const fields = names.map((name) => field(name, parts[name], required.includes(name)));
  return {
    key,
    shown: h("div", {}, h("p", {}, visible(message, { lines: true })), fields.map((one) => one.shown)),
    said() {
      const given = fields.map(({ name, value }) => [name, value()]).filter(([, value]) => value !== undefined);
      return { action: "accept", content: Object.fromEntries(given) };
    },
  };
}

/** One value of a form; undefined for one that was left out. */
function field(name, schema, needed) {
  const label = visible(schema.title ?? name);
  const { made, value } = one(label, schema, needed);
  const about = schema.description && h("small", {}, ` ${visible(schema.description)}`);
  return { name, value, shown: h("label", {}, label, needed && " (needed)", about, made) };
}

function one(label, schema, needed) {
  const offered = choices(schema) ?? (schema.type === "boolean" ? [[true, "true"], [false, "false"]] : null);
  if (offered) return chosen(offered, schema.default, needed);
  if (schema.type === "array") return several(label, schema);
  const isNumber = ["integer", "number"].includes(schema.type);
  const hasLines = String(schema.default).includes("\n");
  const made = hasLines ? h("textarea") : h("input", { type: isNumber ? "number" : "text", step: isNumber && "any" });
  made.value = schema.default ?? "";
  return { made, value: () => (made.value === "" ? undefined : isNumber ? Number(made.value) : made.value) };
}

/** What a schema lets one choose from, each with its words; null where it is free. */
function choices({ enum: values, enumNames = [], oneOf, anyOf }) {
  if (values) return values.map((value, index) => [value, enumNames[index] ?? value]);
  return (oneOf ?? anyOf)?.map(({ const: value, title }) => [value, title ?? value]) ?? null;
}

function chosen(offered, start, needed) {
  const options = offered.map(([value, words], index) => h("option", { value: index, selected: value === start }, visible(words)));
  const made = h("select", {}, (!needed || start === undefined) && h("option", { value: "" }), options);
  return { made, value: () => (made.value === "" ? undefined : offered[Number(made.value)][0]) };
}

function several(label, schema) {
  const offered = choices(schema.items ?? {});
  const start = schema.default ?? [];
  if (offered) {
    const options = offered.map(([value, words], index) =>
      h("option", { value: index, selected: start.includes(value) }, visible(words)));
    const made = h("select", { multiple: true }, options);
    return { made, value: () => [...made.selectedOptions].map((option) => offered[Number(option.value)][0]) };
  }
  const made = h("input", { type: "text", placeholder: '["one", "another"]', value: start.length > 0 && JSON.stringify(start) });
  return { made, value: () => (made.value === "" ? undefined : listed(label, made.value)) };
}

function listed(label, text) {
  try {
    return JSON.parse(text, exact);
  } catch {
    throw new Error(`${label} must be a list in JSON, such as ["one", "another"].`);
  }
}
