"""Everything that a chapter reads from elsewhere, fetched at once: for a machine that will have no network."""

from collections.abc import Callable

from fivelenses import tasks
from fivelenses.models import encoders
from fivelenses.runs.settings import settings
from fivelenses.tasks.edge_tasks import edge_table


def fetch(chapter: int, profile: str, log: Callable[[str], None]) -> None:
    """Fetch the encoders and data of a chapter from the hub, or check that the mirror has them.

    Args:
        chapter: its number.
        profile: tiny, small or paper.
        log: told each thing that is at hand, with where it is from.

    Raises:
        ParameterError: no such chapter or profile.
        SourceError: an encoder or a data set that is not to be had; the sentence says which.
    """
    chosen = settings(chapter, profile)
    for name in chosen.encoders_read():
        encoder = encoders.locate(name)
        encoders.tokenizer(encoder)
        encoders.load_weights(encoder)
        log(f"encoder {name}: at hand ({encoder.identity})")
    for name in chosen.tasks:
        data = tasks.load(name, chosen.source)
        for split in data.splits:
            log(f"{data.task.title} {split}: {data.provenance(split)}")
    for name in getattr(chosen, "edge_tasks", ()):
        counts = [f"{split} {len(table):,}" for split, table in edge_table(name, chosen.source).items()]
        log(f"edge probing, {name}: {', '.join(counts)} targets")
