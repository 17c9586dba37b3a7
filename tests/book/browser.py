"""Every page of the built book in a browser, on a desk and on a phone, light and dark: a line for each fault.

    python tests/book/browser.py [--pictures FOLDER]

A fault is a page wider than the screen, a caption or an equation cut off, an error of a script, a picture that does not
load, a surface that is not drawn or does not turn, a pale card in the dark, mathematics that is not set, a request to
another machine, a serious violation of what axe-core checks. With ``--pictures`` a screenshot of each page and view is
left in the folder. Exit status 1 with any fault, 2 without a book or the extra `browser` and a Chromium (CHROMIUM, or
`chromium` on the path).
"""

import argparse
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Error, Page, sync_playwright

from fivelenses.files import project_folder

# The longest wait for mathematics to be set, in milliseconds: a page of the library has hundreds of formulas.
LONGEST_WAIT = 60_000
SERIOUS = {"serious", "critical"}
RAW_TEX = r"""() => {
  const walker = document.createTreeWalker(document.querySelector("article") || document.body, NodeFilter.SHOW_TEXT);
  const raw = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest("pre, code, script, style, mjx-container, [hidden]")) continue;
    if (/\\(frac|sum|lVert|langle|mathrm|alpha|delta|theta)\b|\\\(|\\\[|\$[^$\s][^$]*\$/.test(node.textContent)) {
      raw.push(node.textContent.trim().slice(0, 60));
    }
  }
  return raw;
}"""
UNLOADED = """async () => {
  const pictures = [...document.images];
  pictures.forEach((picture) => { picture.loading = "eager"; });
  await Promise.all(pictures.map((picture) => picture.decode().catch(() => {})));
  return pictures.filter((picture) => !picture.naturalWidth).map((picture) => picture.getAttribute("src"));
}"""
TOO_WIDE = """() => {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room) return "";
  const wide = [...document.querySelectorAll("article *")].find((one) => one.getBoundingClientRect().right > room + 1);
  return `${document.documentElement.scrollWidth} of ${room} pixels` + (wide ? `, ${wide.tagName} first` : "");
}"""
CUT_CAPTIONS = """() => [...document.querySelectorAll(".exhibit-table caption")].filter((caption) => {
  const box = caption.closest(".exhibit-table").getBoundingClientRect();
  return caption.getBoundingClientRect().right > box.right + 1;
}).map((caption) => caption.textContent.trim().slice(0, 40))"""
BRIGHT = """() => [...document.querySelectorAll("article .picture img")].filter((one) =>
  one.offsetParent && !getComputedStyle(one).filter.includes("invert") && !parseFloat(getComputedStyle(one).borderWidth)
).map((one) => one.alt.slice(0, 40))"""
PALE = """() => [...document.querySelectorAll("article .cell_output *:not(canvas.shades)")].filter((one) => {
  const [red, green, blue, cover = 1] = getComputedStyle(one).backgroundColor.match(/[\\d.]+/g).map(Number);
  return cover > 0.5 && Math.min(red, green, blue) > 190 && one.getBoundingClientRect().width > 100;
}).map((one) => `${one.tagName} ${one.className}`)"""
UNDRAWN = """() => [...document.querySelectorAll("details.turnable canvas")].filter((canvas) => {
  canvas.closest("details").open = true;
  const pixels = () => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const before = pixels();
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
  return !before.some(Boolean) || pixels().every((value, place) => value === before[place]);
}).map((canvas) => canvas.ariaLabel.slice(0, 40))"""
CUT_MATHEMATICS = """() => [...document.querySelectorAll("article mjx-container")].filter((one) => {
  const drawn = one.offsetParent && one.querySelector("svg");
  if (!drawn) return false;
  const [inner, outer] = [drawn.getBoundingClientRect(), one.getBoundingClientRect()];
  const scrolls = ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
  const shown = getComputedStyle(one).overflowY === "visible";
  return (!shown && inner.bottom > outer.bottom + 2) || (!scrolls && inner.right > outer.right + 2);
}).map((one) => one.textContent.trim().slice(0, 40) || one.parentElement.textContent.trim().slice(0, 40))"""
MATHEMATICS_IS_SET = "() => !window.MathJax || !MathJax.startup || MathJax.startup.promise.then(() => true)"


@dataclass(frozen=True)
class View:
    """A way to look at a page: the width of the screen in pixels, and the theme."""

    name: str
    width: int
    height: int
    theme: str


VIEWS = (View("desk", 1280, 900, "light"), View("phone", 390, 800, "light"), View("desk-dark", 1280, 900, "dark"))


def look(page: Page, file: Path, view: View, picture: Path | None) -> list[str]:
    """What is wrong with one page in one view."""
    said: list[str] = []
    requested: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: requested.append(request.url))
    page.add_init_script(f"localStorage.setItem('mode', '{view.theme}'); localStorage.setItem('theme', '{view.theme}')")
    page.goto(file.as_uri(), wait_until="load")
    page.wait_for_function(MATHEMATICS_IS_SET, timeout=LONGEST_WAIT)
    found = [f"a script says: {one[:120]}" for one in dict.fromkeys(said)]
    found += [f"it asks for {one}" for one in requested if not one.startswith(("file:", "data:", "blob:"))]
    found += [f"the picture {one} does not load" for one in page.evaluate(UNLOADED)]
    found += [f"raw TeX: {one}" for one in page.evaluate(RAW_TEX)]
    found += [f"the surface {one} is not drawn or does not turn" for one in page.evaluate(UNDRAWN)]
    if view.theme == "dark":
        found += [f"a pale card in the dark: {one}" for one in page.evaluate(PALE) + page.evaluate(BRIGHT)]
    wide = page.evaluate(TOO_WIDE)
    if wide:
        found.append(f"too wide: {wide}")
    found += [f"a caption is cut off: {one}" for one in page.evaluate(CUT_CAPTIONS)]
    found += [f"an equation is cut off: {one}" for one in page.evaluate(CUT_MATHEMATICS)]
    for violation in Axe().run(page).response["violations"]:
        if violation["impact"] in SERIOUS:
            first = violation["nodes"][0]["html"][:90]
            found.append(f"axe, {violation['id']} ({violation['impact']}, {len(violation['nodes'])} times): {first}")
    if picture is not None:
        picture.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=picture, full_page=True)
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pictures", type=Path, help="leave a screenshot of each page and view in this folder")
    options.add_argument("--page", action="append", help="only pages whose name has this in it")
    given = options.parse_args()
    folder = project_folder() / "build" / "book" / "html"
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None:
        print("There is no `chromium` on the path: install one, or name it with CHROMIUM.", file=sys.stderr)
        return 2
    files = sorted(file for file in folder.rglob("*.html") if "_static" not in file.relative_to(folder).parts)
    files = [file for file in files if 'http-equiv="Refresh"' not in file.read_text(encoding="utf-8")]
    files = [file for file in files if not given.page or any(part in file.name for part in given.page)]
    if not files:
        named = f" whose name has {' or '.join(given.page)} in it" if given.page else ""
        print(f"There is no page{named} in {folder}: build the book first with `make`.", file=sys.stderr)
        return 2
    faults = 0
    with sync_playwright() as playwright:
        # The pages are this machine's own, and a container has no place for the browser's own box around them.
        try:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        except Error as error:
            print(f"{program} does not start: {str(error).splitlines()[0]}", file=sys.stderr)
            return 2
        for view in VIEWS:
            for file in files:
                context = browser.new_context(viewport={"width": view.width, "height": view.height})
                name = str(file.relative_to(folder).with_suffix("")).replace("/", "-")
                picture = given.pictures / f"{name}-{view.name}.png" if given.pictures else None
                for fault in look(context.new_page(), file, view, picture):
                    print(f"{name} ({view.name}): {fault}", flush=True)
                    faults += 1
                context.close()
        browser.close()
    print(f"{len(files)} pages in {len(VIEWS)} views: {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
