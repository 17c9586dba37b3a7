"""The checks of built pages find each fault they are for, and nothing on a page without any."""

import pytest
from tests.book.page_checks import faults

SOUND = """<html><head><link rel="stylesheet" href="_static/a.css"></head><body><a href="#">top</a><article>
<h1 id="title">A page</h1><p>What it is about, in more words than a heading has.</p>
<a href="other.html#there">inside</a> <a href="https://example.org/paper">outside</a>
<img src="_static/a.png" alt="A curve that rises from 0 to 1.">
<table><caption>What was measured.</caption><tr><td>1</td></tr></table></article></body></html>"""


@pytest.fixture
def book(tmp_path):
    (tmp_path / "_static").mkdir()
    for name in ("a.css", "a.png", "unread.html"):
        (tmp_path / "_static" / name).write_text("<img>")
    (tmp_path / "other.html").write_text(
        '<article><p id="there">Here are ten words, which a page without content does not have.</p></article>'
    )
    (tmp_path / "page.html").write_text(SOUND)
    return tmp_path


def test_a_sound_page_has_no_fault(book):
    assert faults(book) == []


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ('href="_static/a.css"', 'href="https://fonts.example.org/a.css"', "from elsewhere"),
        ('src="_static/a.png"', 'src="//cdn.example.org/a.png"', "from elsewhere"),
        ("<table>", '<div style="background: url(https://example.org/a.png)"></div><table>', "style of a div"),
        ("other.html#there", "nowhere.html", "leads nowhere"),
        ("other.html#there", "other.html#elsewhere", "names a place that other.html does not have"),
        ("other.html#there", "../../etc/passwd", "leaves the book"),
        ('alt="A curve that rises from 0 to 1."', 'alt="png"', "no alternative text"),
        ('alt="A curve that rises from 0 to 1."', "", "no alternative text"),
        ("<caption>What was measured.</caption>", "", "has no caption"),
        ("<table>", "<pre>Traceback (most recent call last)</pre><table>", "Traceback"),
        ("<table>", '<div class="output stderr">careful</div><table>', "printed a warning"),
        ("<table>", '<span class="problematic">{glue}</span><table>', "not understood"),
        ("<table>", '<img src="_static/a.png" alt="The same curve again."><table>', "shows '_static/a.png' 2"),
        ("<table>", "<p>In this run: it rises.</p><p>In this run: it rises.</p><table>", "'In this run: it rises.' 2"),
    ],
)
def test_each_fault_is_found_and_named_with_its_page(book, before, after, fault):
    assert before in SOUND
    (book / "page.html").write_text(SOUND.replace(before, after))
    found = faults(book)
    assert len(found) == 1 and found[0].startswith("page.html: ") and fault in found[0]


def test_a_page_of_headings_alone_has_no_content(book):
    (book / "page.html").write_text("<article><h1>Sweeps</h1><h2>What was swept on this machine</h2></article>")
    assert faults(book) == ["page.html: it has no content"]


def test_a_folder_without_pages_is_refused(tmp_path):
    with pytest.raises(ValueError, match="build the book first"):
        faults(tmp_path)
