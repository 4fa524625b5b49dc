"use strict";
(() => {
  const LETTER = 6.7;
  const labelled = (name, width) => {
    const letters = Math.floor((width - 6) / LETTER);
    if (letters >= name.length) return name;
    return letters > 3 ? name.slice(0, letters - 1) + "…" : "";
  };
  for (const svg of document.querySelectorAll("svg.flame")) {
    const full = Number(svg.dataset.width);
    const boxes = [...svg.querySelectorAll("g")].map((g) => ({
      g, left: Number(g.dataset.left), share: Number(g.dataset.share), name: g.dataset.name,
    }));
    const show = (left, share) => {
      for (const box of boxes) {
        const from = Math.max(0, (box.left - left) / share), to = Math.min(1, (box.left + box.share - left) / share);
        const width = Math.max(0, (to - from) * full);
        box.g.style.display = width > 0.3 ? "" : "none";
        const [rect, text] = [box.g.querySelector("rect"), box.g.querySelector("text")];
        rect.setAttribute("x", from * full);
        rect.setAttribute("width", width);
        text.setAttribute("x", from * full + 3);
        text.textContent = labelled(box.name, width);
      }
    };
    for (const box of boxes) box.g.addEventListener("click", () => show(box.left, box.share));
  }
})();
