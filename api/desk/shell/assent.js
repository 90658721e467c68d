// Starts the modules of a page. They refresh the page, take keys, hold an allow for five seconds, and send forms without a reload.
// Every page works without them. Markup comes from our own server as documents. No module makes markup from text.
//
//     page      parts of the page, other pages, toasts
//     live      the stream that tells a page to refresh itself
//     merge     new content in place, without moving the old content
//     forms     forms without a reload, and the undo
//     holds     the allows that wait five seconds
//     settling  the pause after a card has come
//     rows      the selected row of a list
//     split     the card of the selected row, beside the list
//     together  the sums of the calls that are chosen in a table
//     keys      keyboard shortcuts
//     search    the search as a dialog
//     going     keys that lead to places, the rail, menus
//     times     relative times
//     folding   the groups of the list that a person has folded
//     copying   buttons that copy an id
//     push      notifications in this browser

import { start } from "./forms.js";
import "./going.js";
import "./copying.js";
import "./folding.js";
import "./keys.js";
import "./together.js";
import { listen, refreshSoon } from "./live.js";
import "./search.js";
import "./push.js";
import { tellTimes } from "./times.js";

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refreshSoon();
  listen();
});
setInterval(tellTimes, 5000);
start();
