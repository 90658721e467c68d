// Remembers which groups of the list a person has folded. Without this module they fold as well, for as long as the page is open.

import { one } from "./page.js";

// The click comes before the change, also that of a key.
document.addEventListener("click", (event) => {
  const group = event.target.closest?.("summary")?.closest("details[data-group]");
  if (!group) return;
  const body = new URLSearchParams();
  body.set("csrf_token", one("[name=csrf_token]").value);
  body.set("group", group.dataset.group);
  body.set("open", group.open ? "no" : "yes");
  fetch("/inbox/folded-groups", { method: "POST", body, redirect: "manual", keepalive: true }).catch(() => {});
});
