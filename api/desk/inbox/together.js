// Counts the chosen calls of a table, and adds up their amounts.

import { all, one } from "./page.js";
import { settleAgain } from "./settling.js";

/** Add decimal numbers exactly: as whole numbers of the smallest unit. */
function sum(texts) {
  const places = Math.max(0, ...texts.map((text) => (text.split(".")[1] ?? "").length));
  const units = texts.map((text) => {
    const [whole, rest = ""] = text.split(".");
    return BigInt(whole + rest.padEnd(places, "0"));
  });
  const total = units.reduce((one, other) => one + other, 0n);
  const digits = String(total < 0n ? -total : total).padStart(places + 1, "0");
  const whole = digits.slice(0, digits.length - places).replace(/\B(?=(\d{3})+$)/g, ",");
  const rest = digits.slice(digits.length - places).replace(/0+$/, "");
  return `${total < 0n ? "-" : ""}${whole}${rest && `.${rest}`}`;
}

function draw() {
  const chosen = all("#together tbody :checked");
  one("#number").textContent = chosen.length;
  for (const [i, node] of all("[data-total]").entries()) {
    const text = sum(chosen.map((box) => box.dataset.amounts.split(" ")[i]));
    node.textContent = text;
    for (const cell of all("[data-sum]")) if (cell.dataset.of === node.dataset.of) cell.textContent = text;
  }
}

document.addEventListener("change", ({ target }) => {
  if (!target.matches("#together tbody input")) return;
  draw();
  settleAgain(); // the sum has changed
});
