// What was sent and not taken: the page keeps it, says so where the person is, and offers to try again. Where a login
// has to come in between, the form comes back afterwards with what was typed.
"use strict";

(() => {
  const KEPT = "unsent";
  const TOKEN = "csrfmiddlewaretoken"; // of the session that has ended
  let failed = null; // what to try again
  let asked = ""; // the address of the form in the dialog

  const dialog = () => document.getElementById("dialog");
  const alert = () => document.getElementById("alert");

  function say(words, ctx) {
    if (dialog().open) dialog().prepend(alert());
    else document.getElementById("main").before(alert());
    alert().querySelector("[data-words]").textContent = words;
    alert().hidden = false;
    failed = ctx;
  }

  function retry() {
    const { sourceElement, request } = failed;
    if (sourceElement.matches("form")) sourceElement.requestSubmit(request.submitter ?? null);
    else sourceElement.click();
  }

  // An error page says in its heading and first paragraph what happened and whether anything was saved.
  function told(text, status) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const words = ["h1", "h1 ~ p"].map((name) => page.querySelector(name)?.textContent.trim()).filter(Boolean);
    return words.length ? `${words.join(". ")} What you typed is still here.` : `The server answered ${status}.`;
  }

  const fields = (form) => [...new FormData(form)].filter(([name]) => name !== TOKEN);
  const typed = (form) => form.querySelector("textarea, select, input:not([type=hidden])") !== null;

  function signIn({ request, sourceElement }) {
    const form = request.form ?? sourceElement;
    const here = new URL(dialog().contains(form) ? asked : location.href, location.href);
    const { person, login } = document.body.dataset;
    const kept = { person, action: form.getAttribute("action"), fields: fields(form) };
    if (typed(form)) sessionStorage.setItem(KEPT, JSON.stringify(kept));
    location.assign(`${login}?next=${encodeURIComponent(here.pathname + here.search)}`);
  }

  // The version that was seen comes back too: what others changed meanwhile is still met with a conflict.
  function bringBack() {
    const kept = JSON.parse(sessionStorage.getItem(KEPT));
    sessionStorage.removeItem(KEPT);
    if (kept?.person !== document.body.dataset.person) return;
    const said = (name) => kept.fields.filter(([each]) => each === name).map(([, value]) => value);
    const form = [...document.querySelectorAll("#main form")].find(
      (each) => typed(each) && each.getAttribute("action") === kept.action &&
        each.elements.decision?.value === said("decision")[0],
    );
    for (const field of form?.elements ?? []) {
      const values = said(field.name);
      if (field.matches("[type=checkbox], [type=radio]")) field.checked = values.includes(field.value);
      else if (values.length === 1) [field.value] = values;
    }
    const words = "You had been logged out. What you had typed is here again, and has not been sent.";
    form?.prepend(Object.assign(document.createElement("p"), { className: "notice", role: "status", textContent: words }));
  }

  bringBack();
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-retry]")) retry();
  });
  document.addEventListener("close", () => dialog().contains(alert()) && (alert().hidden = true), true);
  document.addEventListener("htmx:after:request", (event) => {
    const { ctx } = event.detail;
    if (ctx.text.includes('id="main"')) return;
    event.preventDefault();
    const { raw, status } = ctx.response;
    // What was only asked for is shown as it came; what was sent is not given up for it.
    if (ctx.request.method === "GET") location.assign(raw.url);
    else if (raw.redirected && new URL(raw.url).pathname === document.body.dataset.login) signIn(ctx);
    else say(told(ctx.text, status), ctx);
  });
  document.addEventListener("htmx:after:swap", (event) => {
    alert().hidden = true;
    if (event.detail.ctx.target?.id === "dialog-body") asked = event.detail.ctx.request.action;
  });
  document.addEventListener("htmx:error", (event) => say(
    "The server did not answer, so nobody knows whether this was saved. What you typed is still here. " +
      "Trying again is safe: it is done once.", event.detail.ctx,
  ));
})();
