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
  // Long tables open for the printer, and go back to how the reader left them.
  const closed = () => [...document.querySelectorAll("details:not([open])")];
  let opened = [];
  addEventListener("beforeprint", () => { opened = closed(); opened.forEach((d) => { d.open = true; }); });
  addEventListener("afterprint", () => { opened.forEach((d) => { d.open = false; }); });
  const draw = () => {
    for (const script of document.querySelectorAll("script[data-figure]")) {
      const place = document.getElementById(script.dataset.figure);
      const figure = JSON.parse(script.textContent);
      // Small figures stand beside each other as far as they have room, at the size that they were made for.
      if (figure.columns) figure.columns = Math.max(1, Math.min(figure.columns, Math.round(place.clientWidth / 310)));
      vegaEmbed(place, figure, { renderer: "svg", actions: false, tooltip: { theme: "custom" } })
        // A legend's columns follow from the width, and the height from them: it takes a second pass.
        .then(({ view }) => view.resize().runAsync())
        .catch((error) => { place.textContent = "This figure could not be drawn: " + error; console.error(error); });
    }
  };
  draw();
  window.drawFigures = draw;
})();
