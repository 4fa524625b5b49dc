"use strict";
// No timer and no animation: the browser may run on the machine that is measured.
(() => {
  const nav = document.querySelector("nav.pages");
  const path = nav.dataset.path;
  let events = null;
  const say = (text) => { nav.querySelector(".said").textContent = text; };

  const filter = () => {
    const form = document.querySelector("form.filter");
    if (!form) return;
    const words = form.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = form.verdict.value;
    const rows = [...document.querySelectorAll("ol.runs li")];
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const kinds = row.dataset.kinds.split(" ");
      row.hidden = !words.every((word) => text.includes(word)) || (verdict !== "" && !kinds.includes(verdict));
    }
    form.querySelector("output").textContent = rows.filter((row) => !row.hidden).length + " of " + rows.length;
  };
  document.addEventListener("input", filter);
  // What asks for nothing stays out of the address.
  document.addEventListener("submit", ({ target }) => {
    for (const one of target.querySelectorAll("input, select")) one.disabled = one.value === "";
  });

  const chosen = [];
  const choose = () => {
    const bar = document.querySelector("p.compare");
    if (!bar) return;
    bar.hidden = false;
    bar.querySelector("button").disabled = chosen.length !== 2;
  };
  document.addEventListener("change", ({ target }) => {
    if (target.name !== "compared") return;
    if (target.checked) chosen.push(target.value);
    else chosen.splice(chosen.indexOf(target.value), 1);
    choose();
  });
  document.addEventListener("click", ({ target }) => {
    if (target.closest("button.compare")) location.href = "/compare/" + chosen.map(encodeURIComponent).join("/");
  });

  const opened = () => [...document.querySelectorAll("details")].map((one) => one.open && one.textContent.slice(0, 80));
  const take = (drawn) => {
    if (drawn.querySelector("script[data-figure]") && !window.vega) { location.reload(); return; }
    const open = new Set(opened().filter(Boolean));
    const form = document.querySelector("form.filter");
    const asked = form && [...form.elements].map((one) => one.value);
    const theme = document.querySelector("button.theme").textContent;
    for (const old of document.querySelectorAll("script[data-figure]")) old.remove();
    document.querySelector("main").replaceWith(drawn.querySelector("main"));
    document.body.append(...drawn.querySelectorAll("script[data-figure]"));
    for (const one of document.querySelectorAll("details")) one.open = open.has(one.textContent.slice(0, 80));
    document.querySelector("button.theme").textContent = theme;
    const again = document.querySelector("form.filter");
    if (asked && again) { [...again.elements].forEach((one, at) => { one.value = asked[at]; }); filter(); }
    for (const one of document.querySelectorAll("input[name=compared]")) one.checked = chosen.includes(one.value);
    choose();
    document.title = drawn.title;
    nav.dataset.shown = drawn.querySelector("nav.pages").dataset.shown;
    nav.querySelector("ul").replaceWith(drawn.querySelector("nav.pages ul"));
    window.drawFigures();
  };
  // By this the server knows which of its readers has the page on that was drawn last.
  const reader = Math.random().toString(36).slice(2);
  const draw = async () => {
    const answer = await fetch(path, { cache: "no-store", headers: { "{{ reader_header }}": reader } });
    take(new DOMParser().parseFromString(await answer.text(), "text/html"));
  };

  const end = (text) => { events.close(); events = null; say(text); };
  const follow = () => {
    if (events || document.hidden) return;
    say("");
    const asked = new URLSearchParams({ page: path, reader, shown: nav.dataset.shown });
    events = new EventSource("/events?" + asked);
    events.addEventListener("drawn", ({ data }) => { if (data !== nav.dataset.shown) draw().catch(() => {}); });
    events.addEventListener("over", ({ data }) => end(data));
    events.onerror = () => end("Dyno no longer serves this page. It stays as it was drawn last.");
  };
  // A browser has few connections to one server, so a page that nobody sees gives its own back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && events) { events.close(); events = null; } else follow();
  });
  addEventListener("pagehide", () => { if (events) { events.close(); events = null; } });
  addEventListener("pageshow", () => {
    for (const one of document.querySelectorAll("form.filter :disabled")) one.disabled = false;
    follow();
  });

  choose();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const form = document.querySelector("form.filter");
    if (event.target.closest("input, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const link = document.querySelector(`nav.pages a[data-key="${CSS.escape(event.key)}"]`);
    const rows = [...document.querySelectorAll("ol.runs li:not([hidden]) > a")];
    const at = rows.indexOf(document.activeElement);
    if (event.key === "/" && form) form.text.focus();
    else if (event.key === "j" && rows.length) rows[Math.min(at + 1, rows.length - 1)].focus();
    else if (event.key === "k" && rows.length) rows[Math.max(at - 1, 0)].focus();
    else if (link) link.click();
    else return;
    event.preventDefault();
  });
})();
