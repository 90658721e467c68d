// Shows on the page of a link what comes of the call that was allowed there. Without scripts the page loads itself again.

import { load, one } from "./page.js";

const FIRST_MS = 1000;
const LONGEST_MS = 30000;

async function look(ms) {
  let follows = true;
  try {
    const { status, page } = await load(location.href);
    const outcome = status === 200 && one("#outcome", page);
    follows = outcome && one("[data-followed]", page);
    if (outcome && outcome.textContent !== one("#outcome").textContent) one("#outcome").replaceWith(outcome);
  } catch {
    // The connection is lost: look again later.
  }
  if (follows) lookIn(Math.min(ms * 1.5, LONGEST_MS));
}

const lookIn = (ms) => setTimeout(() => look(ms), ms);
lookIn(FIRST_MS);
