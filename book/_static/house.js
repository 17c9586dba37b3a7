// The theme's toggles beside the table of contents are arrows without a name, which a screen reader cannot read out.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("li.has-children > details > summary").forEach((toggle) => {
    const chapter = toggle.closest("li").querySelector("a").textContent.trim();
    toggle.setAttribute("aria-label", `More under ${chapter}`);
  });
});
