// What a screen reader and a keyboard need of the theme: its arrows beside the table of contents have no name, and what
// scrolls sideways on a phone cannot be reached with a key.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("li.has-children > details > summary").forEach((toggle) => {
    const chapter = toggle.closest("li").querySelector("a").textContent.trim();
    toggle.setAttribute("aria-label", `More under ${chapter}`);
  });
  // What the list around them asks for: screen readers take the bibliography's entries for none.
  document.querySelectorAll('[role="doc-biblioentry"]').forEach((entry) => entry.setAttribute("role", "listitem"));
  const reach = () => document.querySelectorAll("article table, article dd, article pre, article .exhibit-table").forEach((one) => {
    if (one.scrollWidth > one.clientWidth && getComputedStyle(one).overflowX !== "visible") one.tabIndex = 0;
  });
  window.addEventListener("load", reach);
  window.addEventListener("resize", reach);
});
