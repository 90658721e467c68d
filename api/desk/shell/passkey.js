// A form with `data-passkey` asks the authenticator first, and then sends the authenticator's answer as its field `credential`.
"use strict";

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) continue;
  const button = form.querySelector("button");
  button.disabled = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      form.elements.credential.value = JSON.stringify(await ask(form));
      form.submit();
    } catch (error) {
      const problem = form.querySelector(".problem");
      problem.textContent = error.name === "NotAllowedError" ? "No passkey was used. Try again, or sign in another way." : error.message;
      problem.hidden = false;
      button.disabled = false;
    }
  });
}

/** Fetch the server's options, and return the authenticator's answer. Throws an error if the server refuses. */
async function ask(form) {
  const body = new URLSearchParams({ csrf_token: form.elements.csrf_token.value });
  const response = await fetch(form.dataset.options, { method: "POST", body });
  if (!response.headers.get("content-type").startsWith("application/json")) {
    const page = await response.text();
    throw new Error(page.match(/role="alert">([^<]*)</)?.[1] ?? "The server refuses this.");
  }
  const options = await response.json();
  const credential = form.dataset.passkey === "get"
    ? await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })
    : await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) });
  return credential.toJSON();
}
