"use strict";
(() => {
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];
  // What is drawn anew has another button.
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button.theme");
    if (!button) return;
    const next = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % themes.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    button.textContent = "Theme: " + next;
  });
  // A server gives the library and each figure by itself. A file holds both, packed.
  const figures = async () => {
    const packed = document.getElementById("packed");
    const single = [...document.querySelectorAll("script[data-figure]")];
    if (!packed) return single.map((one) => [one.dataset.figure, JSON.parse(one.textContent)]);
    const bytes = Uint8Array.from(atob(packed.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const [library, told] = (await new Response(stream).text()).split("\0");
    const script = document.createElement("script");
    script.textContent = library;
    document.head.append(script);
    return Object.entries(JSON.parse(told));
  };
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  const point = (_handler, event, _item, value) => {
    tip.hidden = !value;
    if (tip.hidden) return;
    tip.replaceChildren(...Object.entries(value).filter(([, text]) => text).map(([name, text]) => {
      const line = document.createElement("div"), key = document.createElement("span");
      key.textContent = name + " ";
      line.append(key, String(text));
      return line;
    }));
    document.body.append(tip);
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = Math.max(0, Math.min(event.clientX + 12, innerWidth - width - 8)) + "px";
    tip.style.top = Math.max(0, event.clientY + 12 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 12) + "px";
  };
  const views = [];
  let again;
  // A legend's columns follow from the width, and the height from them: it takes a second pass.
  const fit = (view) => view.resize().runAsync();
  addEventListener("resize", () => {
    clearTimeout(again);
    again = setTimeout(() => views.forEach(fit), 100);
  });
  const show = async (place, figure) => {
    // Small figures stand beside each other as far as they have room, at the size that they were made for.
    if (figure.layout?.columns) figure.layout.columns = Math.max(1, Math.min(figure.layout.columns, Math.round(place.clientWidth / 310)));
    const view = new vega.View(vega.parse(figure), { renderer: "svg" });
    await view.initialize(place).tooltip(point).hover().runAsync();
    await fit(view);
    views.push(view);
  };
  const draw = async () => {
    for (const old of views.splice(0)) old.finalize();
    for (const [key, figure] of await figures()) {
      const place = document.getElementById(key);
      await show(place, figure).catch((error) => { place.textContent = "This figure could not be drawn: " + error; console.error(error); });
    }
  };
  if (document.querySelector("#packed, script[data-figure]")) draw().catch((error) => {
    for (const place of document.querySelectorAll(".figure:empty")) place.textContent = "This figure could not be drawn: " + error;
  });
  window.drawFigures = draw;
})();
