"use strict";
// What every section shares: theme, print, what a chart's marks say.
(() => {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll(".published details, section > details")) part.open = true;
  });

  const tip = document.getElementById("tip");
  addEventListener("pointerover", (event) => {
    const mark = event.target.closest ? event.target.closest("svg [data-tip]") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const over = mark.getBoundingClientRect();
    const left = Math.min(over.left + over.width / 2, innerWidth - tip.offsetWidth - 12);
    tip.style.left = `${Math.max(8, left) + scrollX}px`;
    tip.style.top = `${over.top + scrollY - tip.offsetHeight - 8}px`;
  });
})();
