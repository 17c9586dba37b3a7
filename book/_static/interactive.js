// Pictures that a reader can turn or ask: drawn when they are unfolded, and again when another view or theme is chosen.
document.addEventListener("DOMContentLoaded", () => {
  const plotly = () => new Promise((resolve) => {
    if (window.Plotly) return resolve();
    const script = document.createElement("script");
    script.src = `${document.documentElement.dataset.content_root || "../"}_static/plotly.min.js`;
    script.addEventListener("load", resolve);
    document.head.append(script);
  });
  const draw = async (piece) => {
    await plotly();
    const place = piece.querySelector(".interactive-picture");
    const views = JSON.parse(piece.querySelector("script").textContent);
    const { data, layout } = views[piece.querySelector("select")?.selectedIndex ?? 0];
    // In the dark, lines are inverted with their letters; shades keep their meaning, with letters as the page has them.
    if (place.classList.contains("shades")) layout.font.color = getComputedStyle(piece).color;
    await window.Plotly.react(place, data, layout, { responsive: true, displayModeBar: false });
    place.dataset.drawn = "yes";
  };
  for (const piece of document.querySelectorAll("details.interactive")) {
    const again = () => piece.open && draw(piece);
    piece.addEventListener("toggle", again);
    piece.querySelector("select")?.addEventListener("change", again);
    new MutationObserver(again).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }
});
