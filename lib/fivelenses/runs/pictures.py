"""How a picture stands on a page, light or dark: in the book, on a run's page, in a report."""

import base64
import html
import io
from collections.abc import Callable
from pathlib import Path

import nbformat
from PIL import Image

from fivelenses.exhibits.exhibit import DRAWN_IN, IN_THE_DARK, SHADES

NARROW = 640  # pixels; a phone shows such a picture whole, with letters of 10 pixels


def element(light: bytes, dark: bytes, alt: str, address: Callable[[bytes], str]) -> str:
    """A picture that scrolls in its own box where the screen is too narrow to read its numbers.

    Args:
        light, dark: PNGs; without a dark one, a dark page shows the light one inverted.
        alt: what a reader who cannot see it should know.
        address: from a PNG to where the page finds it.
    """
    image = Image.open(io.BytesIO(light))
    kind = image.info.get(DRAWN_IN, SHADES) + " narrow" * (image.width <= NARROW)
    about = f'alt="{html.escape(alt)}" width="{image.width}" height="{image.height}" loading="lazy"'
    images = f'<img src="{address(light)}" {about}>'
    if dark:
        images = f'<img class="only-light" src="{address(light)}" {about}>'
        images += f'<img class="only-dark" src="{address(dark)}" {about}>'
    return f'<div class="picture {kind}" tabindex="0">{images}</div>'


def within(drawn: bytes) -> str:
    """The address of a picture that the page itself holds."""
    return f"data:image/png;base64,{base64.b64encode(drawn).decode()}"


def of_file(file: Path, alt: str, address: Callable[[bytes], str] = within) -> str:
    """The element of a picture that an exhibit has saved."""
    dark = file.with_suffix(IN_THE_DARK)
    return element(file.read_bytes(), dark.read_bytes() if dark.is_file() else b"", alt, address)


def of_output(output: nbformat.NotebookNode, address: Callable[[bytes], str] = within) -> nbformat.NotebookNode:
    """A picture of a notebook as an element of the page with its own alternative text: builders have one for a whole
    cell. Any other output is left as it is.
    """
    content = output.get("data", {}).get("image/png")
    if content is None:
        return output
    about = output.metadata.get("image/png", {})
    dark = base64.b64decode(about.get("dark", ""))
    written = element(base64.b64decode(content), dark, about.get("alt", ""), address)
    return nbformat.v4.new_output("display_data", {"text/html": written})
