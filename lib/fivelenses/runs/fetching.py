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
        log: called with one line for each encoder and data set that is there, with where it is from.

    Raises:
        ParameterError: no such chapter or profile.
        SourceError: an encoder or a data set that cannot be fetched; the sentence says which.
    """
    parameters = settings(chapter, profile)
    for name in parameters.encoders_read():
        encoder = encoders.locate(name)
        encoders.tokenizer(encoder)
        encoders.load_weights(encoder)
        log(f"encoder {name}: available ({encoder.identity})")
    for name in parameters.tables_read():
        data = tasks.load(name, parameters.source)
        for split in data.splits:
            log(f"{data.task.title} {split}: {data.provenance(split)}")
    for name in getattr(parameters, "edge_tasks", ()):
        counts = [f"{split} {len(table):,}" for split, table in edge_table(name, parameters.source).items()]
        log(f"edge probing, {name}: {', '.join(counts)} targets")
