// Keys, dialogs and focus. Every key presses a visible button or link that shows it: the page is the registry.
"use strict";

(() => {
  let busy = false; // between a request and its answer no key decides anything
  let prefix = "";
  let opener = null;

  const dialog = () => document.getElementById("dialog");
  const typing = (element) =>
    element.closest("textarea, select, [contenteditable], input:not([type=radio], [type=checkbox], [type=submit])");

  function pressed(key) {
    const within = dialog().open ? dialog() : document;
    const found = [...within.querySelectorAll("[data-key]")].filter(
      (each) => each.dataset.key === key && !each.disabled && each.getAttribute("aria-disabled") !== "true" &&
        each.checkVisibility({ visibilityProperty: true }),
    );
    const row = document.activeElement?.closest("[data-rows] > *"); // the row in focus has its own keys
    return found.find((each) => row?.contains(each)) ?? found.find((each) => each.closest("#main")) ?? found[0];
  }

  function onKey(event) {
    if (event.ctrlKey || event.metaKey) {
      const form = event.key === "Enter" && event.target.closest("form");
      if (form && !busy) form.requestSubmit();
      return;
    }
    if (event.altKey || event.isComposing || event.repeat) return;
    if (event.key === "Escape" && typing(event.target) && !dialog().open) return event.target.blur();
    if (document.body.dataset.keys === "off" || typing(event.target) || busy) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary, input")) return;
    const key = prefix ? `${prefix} ${event.key}` : event.key;
    prefix = "";
    const target = pressed(key);
    if (target) {
      event.preventDefault();
      press(target);
    } else if (document.querySelector(`[data-key^="${CSS.escape(event.key)} "]`) && !dialog().open) {
      prefix = event.key;
      setTimeout(() => (prefix = ""), 1500);
    }
  }

  function press(target) {
    if (target.matches("input, textarea, select")) {
      target.focus();
      if (target.type === "radio" || target.type === "checkbox") {
        target.click();
        if (target.dataset.submits) target.form.requestSubmit();
      }
    } else {
      target.click();
    }
  }

  // j and k move along the list; Enter or o opens what they stand on.
  function onMove(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || busy || dialog().open) return;
    if (document.body.dataset.keys === "off" || typing(event.target)) return;
    const rows = [...document.querySelectorAll("[data-rows] a.cover")];
    const here = document.activeElement?.closest("[data-rows] > *");
    const at = rows.findIndex((each) => each === document.activeElement || here?.contains(each));
    const step = { j: 1, k: -1 }[event.key];
    if (step && rows.length) {
      event.preventDefault();
      rows[Math.min(rows.length - 1, Math.max(0, at + step))].focus();
    } else if (event.key === "o" && at >= 0) {
      rows[at].click();
    }
  }

  function open() {
    if (!dialog().open) dialog().showModal();
    const first = dialog().querySelector("[data-focus]") ??
      dialog().querySelector("input:checked, input:not([type=hidden]), textarea, button");
    if (first) first.focus();
  }

  function close() {
    if (dialog().open) dialog().close();
  }

  function settle(target) {
    if (target.id === "dialog-body") return open();
    close();
    keepPlace();
    const next = document.querySelector("#main [data-focus]") || document.querySelector("#main h1");
    if (next && !document.querySelector("#main [autofocus]")) {
      next.setAttribute("tabindex", next.tabIndex < 0 ? "-1" : next.tabIndex);
      next.focus({ preventScroll: next.tagName === "H1" });
    }
    if (next && next.tagName === "H1") window.scrollTo(0, 0);
  }

  // A list keeps its place behind a decision and behind Back, and the chosen row is in sight.
  const places = new Map();

  function keepPlace() {
    const list = document.querySelector("#main [data-list]");
    const row = list?.querySelector("[aria-current]");
    if (!row) return;
    list.scrollTop = places.get(list.dataset.list) ?? 0;
    const outer = list.getBoundingClientRect();
    const inner = row.getBoundingClientRect();
    list.scrollTop += Math.min(0, inner.top - outer.top) + Math.max(0, inner.bottom - outer.bottom);
  }

  function setBusy(now) {
    busy = now;
    document.getElementById("main")?.setAttribute("aria-busy", String(now));
  }

  // A page that shows a version asks from time to time whether it still is the present one.
  async function watch() {
    const notice = document.querySelector("#main [data-watch][hidden]");
    if (!notice || document.hidden) return;
    const answer = await fetch(notice.dataset.watch, { redirect: "error" }).catch(() => null);
    if (answer?.ok) notice.hidden = (await answer.text()) === notice.dataset.seen;
  }

  setInterval(watch, 15000);
  // Marked rows: without a mark the row in focus is meant; a range goes from the last mark to here, or to the end.
  const boxes = () => [...document.querySelectorAll('#main [data-rows] input[name="marked"]')];
  const inFocus = (box) => box.closest("[data-rows] > *").contains(document.activeElement);

  function markRange() {
    const all = boxes();
    const here = all.findIndex(inFocus);
    const from = all.findLastIndex((box, n) => box.checked && (here < 0 || n <= here));
    for (const box of all.slice(Math.max(0, from), here > from ? here + 1 : all.length)) box.checked = true;
  }

  // The question on the page is held while somebody works on it, and let go when they leave it.
  let held = null;
  let heldAt = 0;
  let told = Promise.resolve(); // what was said last: the server must not hear "mine" after "no longer"

  function post(url) {
    const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
    const headers = { "X-CSRFToken": token, "X-Hold": "1" };
    return fetch(url, { method: "POST", keepalive: true, redirect: "error", headers }).catch(() => null);
  }

  function tell(url) {
    told = told.then(() => post(url));
    return told;
  }

  function letGo({ type } = {}) {
    if (held && type === "pagehide") post(held.dataset.release); // nothing runs after this
    else if (held) tell(held.dataset.release);
    held = null;
  }

  async function hold() {
    const card = document.querySelector("#main [data-claim]");
    const shown = card?.checkVisibility() ? card : null;
    if (held && held.dataset.release !== shown?.dataset.release) letGo();
    if (!shown) return;
    held = shown;
    heldAt = Date.now();
    const answer = await tell(shown.dataset.claim);
    shown.querySelector("[data-lost]").hidden = answer?.status !== 409;
  }

  function renew() {
    if (!held || Date.now() - heldAt > 60000) hold();
  }

  hold();
  keepPlace();
  document.addEventListener("scroll", ({ target }) => {
    if (target.dataset?.list) places.set(target.dataset.list, target.scrollTop);
  }, true);
  document.addEventListener("keydown", renew);
  document.addEventListener("pointerdown", renew);
  window.addEventListener("pagehide", letGo);
  document.addEventListener("cancel", letGo, true);
  document.addEventListener("keydown", onKey);
  document.addEventListener("keydown", onMove);
  document.addEventListener("click", (event) => {
    const closer = event.target.closest("[data-close]");
    if (closer && dialog().open) {
      event.preventDefault();
      close();
      letGo();
    }
    if (event.target.closest("[data-mark-range]")) markRange();
    if (event.target.closest("#marks [name=act]") && !boxes().some((box) => box.checked)) {
      for (const box of boxes().filter(inFocus)) box.checked = true;
    }
    const copied = event.target.closest("[data-copy]");
    if (copied) navigator.clipboard?.writeText(new URL(copied.dataset.copy, location.href).href);
    const link = event.target.closest("[data-dialog]");
    if (link) opener = link.matches("form") ? event.target.closest("button") : link;
  });
  document.addEventListener("close", () => {
    if (!dialog().open) document.getElementById("dialog-body").replaceChildren(); // its ids are the next form's
    if (opener?.isConnected) opener.focus();
  }, true);
  document.addEventListener("htmx:before:request", () => setBusy(true));
  document.addEventListener("htmx:finally:request", () => setBusy(false));
  document.addEventListener("htmx:after:swap", (event) => {
    settle(event.detail?.ctx?.target ?? event.target);
    hold();
  });
})();
