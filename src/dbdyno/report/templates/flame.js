"use strict";
(() => {
  const LETTER = 6.7;
  const labelled = (name, width) => {
    const letters = Math.floor((width - 6) / LETTER);
    if (letters >= name.length) return name;
    return letters > 3 ? name.slice(0, letters - 1) + "…" : "";
  };
  for (const svg of document.querySelectorAll("svg.flame")) {
    const height = svg.viewBox.baseVal.height;
    const boxes = [...svg.querySelectorAll("g")].map((g) => ({
      g, left: Number(g.dataset.left), share: Number(g.dataset.share), name: g.dataset.name,
    }));
    let [left, share, full] = [0, 1, 0];
    // One unit is one pixel at every width of the page, so that letters keep their size.
    const draw = () => {
      svg.setAttribute("viewBox", `0 0 ${full} ${height}`);
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
    for (const box of boxes) box.g.addEventListener("click", () => { [left, share] = [box.left, box.share]; draw(); });
    const fit = () => { full = svg.getBoundingClientRect().width; draw(); };
    addEventListener("resize", fit);
    fit();
  }
})();
