"""How a picture stands on a page: in the book, on a run's page, in a report."""

import base64
import html
import io
from collections.abc import Callable

import nbformat
from PIL import Image

from fivelenses.exhibits.exhibit import DRAWN_IN, SHADES

NARROW = 640  # pixels; a phone shows such a picture whole, with letters of 10 pixels


def within(drawn: bytes) -> str:
    """The address of a picture that the page itself holds."""
    return f"data:image/png;base64,{base64.b64encode(drawn).decode()}"


def element(drawn: bytes, alt: str, address: Callable[[bytes], str] = within) -> str:
    """A picture that scrolls in its own box where the screen is too narrow to read its numbers; its class says whether
    it is drawn in lines or in shades.

    Args:
        drawn: a PNG.
        alt: what a reader who cannot see it should know.
        address: from a PNG to where the page finds it.
    """
    image = Image.open(io.BytesIO(drawn))
    kind = image.info.get(DRAWN_IN, SHADES) + " narrow" * (image.width <= NARROW)
    about = f'alt="{html.escape(alt)}" width="{image.width}" height="{image.height}" loading="lazy"'
    return f'<div class="picture {kind}" tabindex="0"><img src="{address(drawn)}" {about}></div>'


def of_output(output: nbformat.NotebookNode, address: Callable[[bytes], str] = within) -> nbformat.NotebookNode:
    """A picture of a notebook as an element of the page with its own alternative text: builders have one for a whole
    cell. Any other output is left as it is.
    """
    content = output.get("data", {}).get("image/png")
    if content is None:
        return output
    alt = output.metadata.get("image/png", {}).get("alt", "")
    written = element(base64.b64decode(content), alt, address)
    return nbformat.v4.new_output("display_data", {"text/html": written})
