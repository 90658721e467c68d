// The API, as this page sees it: with the key of whoever sits here.

const PLACE = "assent.key";
const PATIENCE = 20_000;
let ahead = 0;

/** The API key: of this tab, or of this browser for who wants to stay signed in. */
export const key = {
  get: () => sessionStorage.getItem(PLACE) ?? localStorage.getItem(PLACE),
  keep(secret, stay = false) {
    (stay ? localStorage : sessionStorage).setItem(PLACE, secret);
  },
  /** The one in use is no good. */
  drop() {
    (sessionStorage.getItem(PLACE) === null ? localStorage : sessionStorage).removeItem(PLACE);
  },
  forget() {
    sessionStorage.removeItem(PLACE);
    localStorage.removeItem(PLACE);
  },
};

/** The API's own words for why not; `status` is 0 where it did not answer. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The server's time in milliseconds, as near as its answers tell. */
export const now = () => Date.now() + ahead;

/** Ask, and get the answer's body. Throws Refused. */
export async function ask(method, path, { query = {}, body, secret = key.get() } = {}) {
  if (/[^\x20-\x7e]/.test(secret ?? "")) throw new Refused(401, "This is no API key: it has characters that no key has.");
  const given = new URLSearchParams(query);
  const headers = { "x-api-key": secret ?? "", ...(body && { "content-type": "application/json" }) };
  const signal = AbortSignal.timeout(PATIENCE);
  let answer, said;
  try {
    answer = await fetch(given.size ? `${path}?${given}` : path, {
      method, headers, signal, body: body && JSON.stringify(body), cache: "no-store", credentials: "omit",
    });
    said = await answer.json();
  } catch {
    throw new Refused(0, "The server does not answer just now.");
  }
  const date = Date.parse(answer.headers.get("date"));
  if (Math.abs(date - now()) > 2000) ahead = date - Date.now();
  if (!answer.ok) throw new Refused(answer.status, said.error?.message ?? `The server answered ${answer.status}.`);
  return said;
}

/** Rows of a list, as many pages of the usual size as are wanted; `more` says whether there are others behind them. */
export async function list(path, query, pages) {
  const rows = [];
  let next;
  for (let page = 0; page < pages; page++) {
    const answer = await ask("GET", path, { query: { ...query, ...(next && { page: next }) } });
    rows.push(...answer.data);
    next = answer.next_page;
    if (!next) break;
  }
  return { rows, more: Boolean(next) };
}

/** The task, so that it never runs twice at a time: what is asked for meanwhile comes next. */
export function inTurn(task) {
  let last = Promise.resolve();
  return () => (last = last.catch(() => {}).then(task));
}
