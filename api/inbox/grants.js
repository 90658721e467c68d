// Standing approvals: what may run unasked, until it is revoked.

import { ask, inTurn, list } from "./asking.js";
import { anew, grant, h, notice, visible, when } from "./words.js";

/** Draws the grants that allow something now, the newest first. Returns what brings them up to date. */
export function showGrants(view, signal) {
  const rows = h("ul", { class: "rows" });
  const nothing = h("p", { hidden: true }, "Nothing runs unasked by a grant.");
  const further = h("button", { hidden: true, onclick: showMore }, "Show more");
  const fault = notice();
  let pages = 1;
  let drawn = "";
  document.title = "Grants - Assent";
  view.replaceChildren(h("h1", {}, "Grants"), fault, rows, nothing, further);

  function showMore() {
    pages++;
    update().catch(() => {}); // what fails there, the next poll says
  }

  const update = inTurn(async () => {
    const found = await list("v1/grants", { live: true }, pages);
    if (signal.aborted) return;
    const state = JSON.stringify(found.rows);
    if (state !== drawn) rows.replaceChildren(...found.rows.map((row) => line(row, revoke)));
    drawn = state;
    nothing.hidden = found.rows.length > 0;
    further.hidden = !found.more;
    anew(rows);
  });

  async function revoke(id) {
    try {
      await ask("DELETE", `v1/grants/${id}`);
      fault.replaceChildren();
    } catch (error) {
      fault.replaceChildren(error.message);
    }
    await update().catch(() => {}); // what fails there, the next poll says
  }
  return update;
}

function line(row, revoke) {
  return h("li", { class: "plain" },
    h("div", {},
      h("div", {}, grant(row)),
      h("small", {}, "given ", when(row.created_at), ` by ${visible(row.given_by)} `,
        h("a", { href: `#/${row.approval_id}` }, "with this approval")),
      h("div", {}, h("button", { class: "bad", onclick: () => revoke(row.id) }, "Revoke"))));
}
