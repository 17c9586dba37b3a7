"""What a built page has to be: readable without a network, with described pictures, named tables, links that lead
somewhere, and no trace of a failure. As a program on a book's folder it prints the faults, and ends with status 1 where
there are any. What only a browser can see is looked at by `tests/book/browser.py`.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Tag

SHORTEST_ALT = 12  # characters: less does not say what is to be seen
SIGNS_OF_FAILURE = ("Traceback (most recent call last)", "Warning: ", "UserWarning", "FutureWarning")
GENERATED = {"genindex.html", "py-modindex.html", "search.html"}  # the builder's own lists
FINDING = "In this run"  # what a sentence beside an exhibit begins with
HEADINGS = ["h1", "h2", "h3", "h4"]
FEWEST_WORDS = 10
EMPTY_ANCHORS = {"", "top"}  # anchors that every page has


def faults(folder: Path) -> list[str]:
    """All faults of the built pages under a folder, each a sentence that begins with its page."""
    folder = folder.resolve()
    pages = sorted(file for file in folder.rglob("*.html") if "_static" not in file.relative_to(folder).parts)
    if not pages:
        raise ValueError(f"There is no page in {folder}: build the book first.")
    found = []
    for page in pages:
        # Where the navigation of a theme ends and the text begins, so that its own icons are not judged as ours.
        soup = _soup(page)
        text = soup.find("article") or soup
        name = str(page.relative_to(folder))
        found += [f"{name}: {fault}" for fault in (*_outside(soup), *_broken(soup, page, folder))]
        if name not in GENERATED:
            checks = (_undescribed, _failed, _repeated, _empty)
            found += [f"{name}: {fault}" for check in checks for fault in check(text)]
    _soup.cache_clear()
    return found


@cache
def _soup(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def _outside(soup: BeautifulSoup) -> Iterator[str]:
    """What the page would load from elsewhere; a plain link is free to lead there."""
    for element in soup.find_all(True):
        for attribute in ("src", "href", "srcset", "data", "poster"):
            address = element.get(attribute)
            if element.name == "a" or not isinstance(address, str) or "canonical" in (element.get("rel") or []):
                continue
            if urlsplit(address).netloc:
                yield f"it loads {address} from elsewhere"
        if "url(http" in element.get("style", "") or (element.name == "style" and "url(http" in element.text):
            yield f"the style of a {element.name} loads something from elsewhere"


def _broken(soup: BeautifulSoup, page: Path, folder: Path) -> Iterator[str]:
    """Links and sources inside the book that lead nowhere."""
    for element in soup.find_all(["a", "img", "script", "link"]):
        address = element.get("href") or element.get("src")
        if not address or urlsplit(address).scheme or urlsplit(address).netloc:
            continue
        path, anchor = unquote(urlsplit(address).path), unquote(urlsplit(address).fragment)
        target = (page.parent / path).resolve() if path else page
        if not target.is_relative_to(folder):
            yield f"its link {address} leaves the book"
        elif not target.exists():
            yield f"its link {address} leads nowhere"
        elif target.suffix == ".html" and anchor not in EMPTY_ANCHORS and anchor not in _names(target):
            yield f"its link {address} names a place that {target.name} does not have"


@cache
def _names(page: Path) -> frozenset[str]:
    return frozenset(element["id"] for element in _soup(page).find_all(id=True))


def _undescribed(text: Tag) -> Iterator[str]:
    for picture in text.find_all("img"):
        if len(picture.get("alt", "")) < SHORTEST_ALT:
            yield f"the picture {picture.get('src', '')[:60]} has no alternative text that says something"
    for table in text.find_all("table"):
        caption = table.find("caption")
        if caption is None or not caption.text.strip():
            yield f"the table that begins {' '.join(table.text.split())[:40]!r} has no caption"


def _failed(text: Tag) -> Iterator[str]:
    if text.select(".output.stderr, .output.traceback"):
        yield "a cell printed a warning or a traceback"
    written = text.get_text()
    for sign in SIGNS_OF_FAILURE:
        if sign in written:
            yield f"it says {sign!r}"
    for problem in text.select(".problematic, .system-message"):
        yield f"something was not understood by the builder: {problem.text.strip()[:60]!r}"


def _repeated(text: Tag) -> Iterator[str]:
    """A picture or a finding that a page has twice."""
    pictures = Counter(picture.get("src") for picture in text.find_all("img"))
    findings = Counter(" ".join(one.text.split()) for one in text.find_all("p") if one.text.startswith(FINDING))
    for repeated in (pictures, findings):
        yield from (f"it shows {one[:60]!r} {count} times" for one, count in repeated.items() if count > 1)


def _empty(text: Tag) -> Iterator[str]:
    """A page that has nothing but headings."""
    headings = " ".join(heading.text for heading in text.find_all(HEADINGS))
    if text.find("meta", attrs={"http-equiv": "Refresh"}):
        return  # it leads to another page
    if len(text.text.split()) - len(headings.split()) < FEWEST_WORDS and not text.find("img"):
        yield "it has no content"


if __name__ == "__main__":
    broken = faults(Path(sys.argv[1]))
    print("\n".join(broken) or f"no fault in {sys.argv[1]}")
    sys.exit(bool(broken))
