// Goes to places by keys (`g`, then a letter), collapses the rail, and closes menus that a click or Escape leaves.

import { all, one } from "./page.js";

const GO_MS = 1500;
let goesUntil = 0;

const isTyping = (target) => target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, dialog[open]");
const collapse = one(".rail .collapse");

/** Collapse the rail, or widen it. The server draws it so from then on. */
function toggleRail() {
  const isNarrow = document.body.classList.toggle("narrow-rail");
  const secure = location.protocol === "https:" ? "; secure" : "";
  document.cookie = `assent_rail=${isNarrow ? "narrow" : "wide"}; path=/inbox; max-age=31536000; samesite=lax${secure}`;
}

if (collapse) {
  collapse.hidden = false;
  collapse.addEventListener("click", toggleRail);
}

// A listener of the capture phase, so that the letter behind `g` does nothing else, such as an allow.
document.addEventListener("keydown", (event) => {
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (performance.now() < goesUntil) {
    goesUntil = 0;
    event.preventDefault();
    event.stopImmediatePropagation();
    const place = /^[a-z]$/.test(event.key) && one(`.rail [data-go="${event.key}"]`);
    if (place) location.assign(place.href);
  } else if (event.key === "g") {
    goesUntil = performance.now() + GO_MS;
  } else if (event.key === "[" && collapse) {
    toggleRail();
  }
}, { capture: true });

/** Close each open menu but the one that holds the node. */
const closeMenus = (node) => all("details.menu[open]").forEach((menu) => menu.contains(node) || (menu.open = false));
document.addEventListener("click", ({ target }) => closeMenus(target));
document.addEventListener("keydown", ({ key }) => key === "Escape" && closeMenus(null));
