// Helpers of every module: parts of this page, other pages of the server, and toasts.

export const one = (selector, root = document) => root.querySelector(selector);
export const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/** Load a page as a document. With a body: send a form, and load the page that its redirect leads to. */
export function load(url, body) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(body ? "POST" : "GET", url);
    request.responseType = "document";
    request.timeout = 20000;
    if (!body) request.setRequestHeader("x-refresh", "1");
    request.onload = () => {
      if (new URL(request.responseURL).pathname === "/sign-in") location.assign(request.responseURL);
      else if (request.response?.body) resolve({ status: request.status, url: request.responseURL, page: request.response });
      else reject(new Error(`The server answered ${request.status}.`));
    };
    request.onerror = request.ontimeout = () => reject(new Error("The server does not respond just now."));
    request.send(body);
  });
}

/** Show a toast at the bottom of the window. Screen readers speak it. Returns the toast. `stays`: the caller removes the toast. */
export function say(words, { id = "", stays = false } = {}) {
  const toast = document.createElement("div");
  toast.className = "toast";
  toast.id = id;
  const text = document.createElement("span");
  text.textContent = words;
  toast.append(text);
  one("#toasts").append(toast);
  if (!stays) setTimeout(() => toast.remove(), 6000);
  return toast;
}
