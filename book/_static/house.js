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

// Cells of code that follow each other unfold as one.
document.addEventListener("DOMContentLoaded", () => {
  const folded = (cell) => cell?.matches("div.cell.tag_hide-input") && cell.querySelector(":scope > details.hide");
  for (const cell of document.querySelectorAll("div.cell.tag_hide-input")) {
    const before = cell.previousElementSibling;
    if (folded(before) && !before.querySelector(":scope > .cell_output")) continue;
    const first = folded(cell);
    const others = [];
    for (let one = cell; folded(one.nextElementSibling) && !one.querySelector(":scope > .cell_output");) {
      one = one.nextElementSibling;
      others.push(folded(one));
    }
    const follow = () => others.forEach((one) => { one.hidden = !first.open; one.open = first.open; });
    first?.addEventListener("toggle", follow);
    follow();
  }
});

// A finding and a verdict can be cited, each by its own address.
document.addEventListener("DOMContentLoaded", () => {
  const { pagename, VERSION } = DOCUMENTATION_OPTIONS;
  const title = document.querySelector("article h1")?.firstChild.textContent.trim();
  const year = document.body.textContent.match(/Copyright (\d{4})/)?.[1];
  const entry = (id) => {
    const page = location.protocol.startsWith("http") ? location.href.split(/[?#]/)[0] : `${pagename}.html`;
    return `@misc{fivelenses-${id},
  author = {{The authors of Five lenses}},
  title  = {${title}: ${id}},
  note   = {Five lenses on fine-tuning, version ${VERSION}},
  url    = {${page}#${id}},
  year   = {${year}},
}`;
  };
  const cited = [...document.querySelectorAll(".finding[id]")].map((one) => [one.id, one.parentElement]);
  document.querySelectorAll("details.claim[id]").forEach((one) => cited.push([one.id, one.querySelector(".claim-body")]));
  for (const [id, place] of cited) {
    const button = Object.assign(document.createElement("button"), { className: "cite", textContent: "cite" });
    const text = Object.assign(document.createElement("pre"), { className: "cite", textContent: entry(id), hidden: true, tabIndex: 0 });
    button.addEventListener("click", () => { text.hidden = !text.hidden; });
    place.append(" ", button);
    place.after(text);
  }
});
