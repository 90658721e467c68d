// The pause after a card has come. The style sheet shows it: the buttons that decide fill. While a button fills it decides nothing,
// because nobody has read the card yet, and a tap, a key or the click that focuses the window may be meant for the page before.

const isFilling = ({ animationName, playState }) => animationName === "settle" && playState === "running";

/** True while the button fills. */
export const isSettling = (button) => Boolean(button?.getAnimations().some(isFilling));

/** Let all buttons fill again, because the page has come into view or shows something else. */
export function settleAgain() {
  document.body.classList.add("unsettled");
  document.body.getBoundingClientRect(); // the browser ends the old animations
  document.body.classList.remove("unsettled");
}
