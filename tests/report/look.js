"use strict";
// Looks at a page at several widths and in both themes, and leaves what is wrong with it as JSON.
(() => {
  const PALE = 4.5, PALE_LARGE = 3, LEAST_SCALE = 0.8;
  const seen = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width > 0 && height > 0 && Number(getComputedStyle(element).opacity) > 0;
  };
  const named = (element) => `${element.tagName} ${element.className.baseVal ?? element.className}: ${element.textContent.trim().slice(0, 60)}`;

  const colour = (text) => {
    const [red, green, blue, alpha = 1] = text.match(/[\d.]+/g).map(Number);
    return { parts: [red, green, blue], alpha };
  };
  const over = (top, strength, below) => top.map((part, index) => part * strength + below[index] * (1 - strength));
  const luminance = (parts) => {
    const [red, green, blue] = parts.map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const behind = (element) => {
    if (!element) return [255, 255, 255];
    const style = getComputedStyle(element), own = colour(style.backgroundColor);
    return own.alpha === 1 ? own.parts : over(own.parts, own.alpha, behind(element.parentElement));
  };
  const behindText = (element) => {
    const box = element.closest("svg.flame g")?.querySelector("rect");
    if (!box) return behind(element.closest("svg")?.parentElement ?? element);
    const style = getComputedStyle(box);
    return over(colour(style.fill).parts, Number(style.fillOpacity) * Number(style.opacity), behind(box.closest("svg")));
  };
  const pale = (root) => [...root.querySelectorAll("*")].filter((element) => {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !seen(element) || element.closest("title, script, style")) return false;
    const style = getComputedStyle(element);
    const ink = colour(element.closest("svg") ? style.fill : style.color);
    const ground = behindText(element);
    const large = parseFloat(style.fontSize) >= 24;
    return contrast(over(ink.parts, ink.alpha, ground), ground) < (large ? PALE_LARGE : PALE);
  }).map(named);

  const texts = (svg) => [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim() && seen(text));
  const collide = (one, other) => {
    const [a, b] = [one.getBoundingClientRect(), other.getBoundingClientRect()];
    // A text's box is higher than its letters.
    return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3;
  };
  const collisions = (svg) => texts(svg).flatMap((one, index, all) => all.slice(index + 1).filter((other) => collide(one, other)).map((other) => `${one.textContent} on ${other.textContent}`));
  const cut = (figure) => texts(figure).filter((text) => {
    const [a, b] = [text.getBoundingClientRect(), figure.getBoundingClientRect()];
    return a.left < b.left - 1 || a.right > b.right + 1 || a.top < b.top - 1 || a.bottom > b.bottom + 1;
  }).map(named);
  const shrunk = (svg) => svg.getBoundingClientRect().width < LEAST_SCALE * (svg.viewBox.baseVal?.width ?? 0);

  const clicked = (root) => {
    delete root.dataset.theme;
    root.querySelector("button.theme")?.click();
    return root.dataset.theme ?? "";
  };
  const look = (frame) => {
    const page = frame.contentDocument, root = page.documentElement;
    const all = (selector) => [...page.querySelectorAll(selector)];
    all("details").forEach((one) => { one.open = true; });
    const themes = {};
    for (const theme of ["light", "dark"]) {
      root.dataset.theme = theme;
      themes[theme] = pale(page.body);
    }
    return {
      wide: root.scrollWidth > frame.clientWidth ? [`${root.scrollWidth}`] : [],
      scrolled: all(".scroll:not(.grid), .figure").filter((one) => one.scrollWidth > one.clientWidth + 1).map(named),
      collisions: all(".figure svg").flatMap(collisions),
      cut: all(".figure").flatMap(cut),
      shrunk: all(".figure svg").filter(shrunk).map((svg) => svg.parentElement.id),
      pale: [...new Set([...themes.light.map((text) => `light ${text}`), ...themes.dark.map((text) => `dark ${text}`)])],
      clicked: clicked(root),
    };
  };
  const frames = [...document.querySelectorAll("iframe")];
  for (const frame of frames.slice(1)) frame.srcdoc = frames[0].srcdoc;
  const followed = (frame) => [...frame.contentDocument.querySelectorAll(".figure svg")].every((svg) => Math.abs(svg.getBoundingClientRect().width - (svg.viewBox.baseVal?.width ?? 0)) < 2 || !svg.viewBox.baseVal?.width);
  const wait = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });
  addEventListener("load", async () => {
    await wait(2000);
    // A window is made wider and narrow again: what is drawn follows. One of them is enough.
    const [turned] = frames.slice(1), { width } = turned;
    for (const wide of [`${Number(width) + 400}`, width]) {
      turned.width = wide;
      await wait(300);
      // On a busy machine a frame's own event may be late.
      if (!followed(turned)) turned.contentWindow.dispatchEvent(new Event("resize"));
      await wait(300);
    }
    await wait(500);
    document.title = JSON.stringify(Object.fromEntries(frames.map((frame) => [frame.width, look(frame)])));
  });
})();
