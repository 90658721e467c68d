// Buttons that copy a text, such as an id, to the clipboard. Without scripts, or over plain HTTP, they do not appear.

import { all, say } from "./page.js";

if (navigator.clipboard) {
  for (const button of all("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => navigator.clipboard.writeText(button.dataset.copy).then(() => say("Copied.")));
  }
}
