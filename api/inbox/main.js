// The page: who sits here, and what is open: `#/` lists, `#/appr_...` is one approval, `#/grants` are grants, `#key=...` signs in.

import { showApproval } from "./approval.js";
import { ask, key, Refused } from "./asking.js";
import { showGrants } from "./grants.js";
import { showList } from "./list.js";
import { h } from "./words.js";

const view = document.getElementById("view");
const trouble = document.getElementById("trouble");
const leave = document.getElementById("leave");
const PAUSE = 2000;
const PAUSE_UNSEEN = 30_000;
let current = new AbortController();

function route() {
  current.abort();
  current = new AbortController();
  say("");
  if (location.hash.startsWith("#key=")) take(new URLSearchParams(location.hash.slice(1)).get("key"));
  leave.hidden = !key.get();
  if (key.get()) repeat(shown(location.hash.replace(/^#\/?/, ""), current.signal), current.signal);
  else signIn();
}

/** The key of a link, out of the address at once. It does not push out somebody who is signed in already, unless they say so. */
function take(secret) {
  history.replaceState(null, "", "#/");
  const known = key.get();
  if (!known || known === secret || confirm("Sign in with the key of this link, instead of the one that is in use here?")) {
    key.keep(secret);
  }
}

function shown(place, signal) {
  if (place.startsWith("appr_")) return showApproval(view, place, signal);
  if (place === "grants") return showGrants(view, signal);
  return showList(view, new URLSearchParams(place), signal);
}

/** Do it now and again, at once when somebody looks again, and less often where it takes long; until the view is left. */
async function repeat(task, signal) {
  while (!signal.aborted) {
    const began = performance.now();
    try {
      await task();
      if (!signal.aborted) say("");
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 401) {
        key.drop();
        route();
        return say(error.message);
      }
      if (!(error instanceof Refused)) reportError(error);
      say(error instanceof Refused ? error.message : `This page failed: ${error}`);
    }
    const took = performance.now() - began;
    await rest(Math.max(document.hidden ? PAUSE_UNSEEN : PAUSE, 5 * took), signal);
  }
}

/** For so many milliseconds, or until the view is left or the page is hidden or seen again. */
function rest(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(wake, milliseconds);
    signal.addEventListener("abort", wake);
    document.addEventListener("visibilitychange", wake);
    function wake() {
      clearTimeout(timer);
      signal.removeEventListener("abort", wake);
      document.removeEventListener("visibilitychange", wake);
      resolve();
    }
  });
}

function say(words) {
  trouble.textContent = words;
}

function signIn() {
  document.title = "Assent";
  const secret = h("input", { type: "password", name: "key", required: true, autocomplete: "current-password" });
  const stay = h("input", { type: "checkbox", name: "stay" });
  const enter = async (event) => {
    event.preventDefault();
    try {
      await ask("GET", "v1/approvals", { query: { limit: 1 }, secret: secret.value.trim() });
    } catch (error) {
      return say(error.message);
    }
    key.forget();
    key.keep(secret.value.trim(), stay.checked);
    route();
  };
  view.replaceChildren(
    h("h1", {}, "Sign in"),
    h("form", { onsubmit: enter },
      h("label", {}, "API key, with the scopes read and approvals", secret),
      h("label", {}, stay, " Stay signed in on this computer"),
      h("button", {}, "Sign in")),
  );
  secret.focus();
}

leave.addEventListener("click", () => {
  key.forget();
  route();
});
addEventListener("hashchange", route);
route();
