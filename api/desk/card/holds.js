// Allows that wait five seconds before they are sent, so that a person can undo them. One toast counts them, and each row its own.

import { all, one, say } from "./page.js";
import { cardInPane } from "./split.js";

const HOLD_MS = 5000;

/** The holds, by the id of each of their calls. A hold stays until the server has answered, so that no call is held twice. */
const holds = new Map();
let clock;

export const isHeld = (id) => holds.has(id);

/** The ids of the calls that are held, as the server reads them. */
export const heldIds = () => [...holds.keys()].join(" ");

const unsent = () => [...new Set(holds.values())].filter(({ timer }) => timer);
const secondsLeft = ({ sendsAt }) => Math.max(Math.ceil((sendsAt - Date.now()) / 1000), 0);

/** Hold an allow of these calls. Returns undefined if one of them is held. `isDue` becomes true after five seconds, or false by an
 * undo. The caller then sends the allow, and calls `end` with the server's answer. */
export function hold(ids, words) {
  if (ids.some(isHeld)) return undefined;
  const entry = { ids, words, sendsAt: Date.now() + HOLD_MS };
  entry.isDue = new Promise((resolve) => {
    entry.timer = setTimeout(() => {
      entry.timer = undefined;
      draw();
      resolve(true);
    }, HOLD_MS);
    entry.drop = () => {
      clearTimeout(entry.timer);
      entry.end();
      resolve(false);
    };
  });
  entry.end = () => {
    for (const id of ids) holds.delete(id);
    draw();
  };
  for (const id of ids) holds.set(id, entry);
  draw();
  return entry;
}

/** Take back every allow that is not sent, and say so. Returns the ids of the calls. */
export function undoAll() {
  const ids = unsent().flatMap((entry) => {
    entry.drop();
    return entry.ids;
  });
  if (ids.length) say(ids.length === 1 ? "Undone. The allow was not sent." : `Undone. ${ids.length} allows were not sent.`);
  return ids;
}

/** Drop every allow that is not sent. */
export const dropAll = () => unsent().forEach(({ drop }) => drop());

/** Show the holds: on the rows or the card of this page, and in the toast. */
export function draw() {
  for (const mark of all(".countdown")) if (!isHeld(mark.dataset.of)) release(mark);
  for (const [id, entry] of holds) for (const card of [document.getElementById(id), cardInPane(id)]) drawOn(card, id, entry);
  drawToast();
  clearInterval(clock);
  if (holds.size) clock = setInterval(draw, 250);
}

/** The part of a row or of a card that a hold closes. */
const closes = (card) => (card.matches("li") ? card : one("#actions", card));

function drawOn(card, id, entry) {
  if (!card) return;
  const part = closes(card);
  part.inert = true;
  part.classList.add("held");
  let mark = one(".countdown", card);
  if (!mark) {
    mark = document.createElement("p");
    mark.className = "countdown";
    mark.dataset.of = id;
    one(".acts, #actions", card).before(mark);
  }
  write(mark, entry.timer ? `Allowing in ${secondsLeft(entry)} s` : "Allowing…");
}

function release(mark) {
  const part = closes(mark.closest("[data-card]"));
  part.inert = false;
  part.classList.remove("held");
  mark.remove();
}

function drawToast() {
  const entries = unsent();
  const toast = one("#held");
  if (!entries.length) {
    toast?.remove();
    return;
  }
  const [text, seconds, button] = (toast ?? newToast()).children;
  const count = entries.flatMap(({ ids }) => ids).length;
  write(text, count === 1 ? entries[0].words : `${count} allows`);
  write(seconds, `in ${Math.max(...entries.map(secondsLeft))} s`);
  write(button.firstChild, count === 1 ? "Undo" : "Undo all");
}

/** Return a toast of a text, the seconds that are left, and the button. Screen readers leave out the seconds. */
function newToast() {
  const button = document.createElement("button");
  const key = document.createElement("kbd");
  key.textContent = "z";
  button.append("Undo", key);
  button.dataset.undoAll = "";
  const seconds = document.createElement("span");
  seconds.className = "seconds";
  seconds.ariaHidden = "true";
  const toast = say("", { id: "held", stays: true });
  toast.append(seconds, button);
  return toast;
}

/** Write a text, unless it is there: screen readers speak each change. */
function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
