"""The answer and the picture of the book's first page, from committed records: layers by lens and encoder.

    python bench/first_picture.py > book/lenses.html

A bar is the mean change of a layer over tasks and seeds. The line across it is the same of a control from which nothing
is learned: a twin, or for weights, which a twin moves as far by construction, a training on shuffled labels.
"""

from collections.abc import Iterator

import pandas as pd

from fivelenses import judging, records

LENSES = {"js": "attention", "svcca": "features", "rsa": "similarity", "weights": "weights"}
UNITS = {"js": "{:.2f} nats", "svcca": "{:.2f}", "rsa": "{:.2f}", "weights": "{:.1%}"}
ENCODERS = {
    "toy-bert-seed-0": "toy BERT, 6 layers × 64",
    "english-bert-seed-0": "our English BERT, 8 × 128",
    "all-MiniLM-L6-v2": "all-MiniLM, 6 × 384",
    "all-mpnet-base-v2": "all-mpnet-base, 12 × 768",
}
LEFT, WIDTH, HEIGHT, ROW, TOP = 4, 118, 44, 88, 44
COLUMNS = ["lens", "layer", "learned", "value"]


def _table(encoder: str, chapter: str, name: str) -> pd.DataFrame:
    return records.read(records.committed_folder() / f"small-{encoder}" / chapter / f"{name}.parquet").table


def _of_chapter_7(encoder: str) -> Iterator[pd.DataFrame]:
    rows = _table(encoder, "7-known-truth", "changes_seen").query("trained == 'all' and dose == 1").copy()
    control = rows["measure"].eq("weights").map({True: "shuffled labels", False: "twin"})
    rows = rows[rows["kind"].eq("tuned") | rows["kind"].eq(control)]
    yield rows.assign(lens=rows["measure"], learned=rows["kind"] == "tuned")


def _of_chapter_6(encoder: str) -> Iterator[pd.DataFrame]:
    rows = _table(encoder, "6-five-lenses", "changes_by_layer").query("fold == -1 and measure != 'weights'")
    yield rows.assign(lens=rows["measure"], learned=rows["control"] == "")


def _of_chapter_5(encoder: str) -> Iterator[pd.DataFrame]:
    rows = _table(encoder, "5-probing-rsa", "similarities")
    rows = rows.query("fold == -1 and layer > 0 and control in ('', 'twin')")
    if encoder == "english-bert-seed-0":
        rows = rows.query("model == 'parsing'")  # the others were not clearly learned
    yield rows.assign(lens="rsa", learned=rows["control"] == "", value=1 - rows["similarity"])


def _of_chapter_4(encoder: str) -> Iterator[pd.DataFrame]:
    yield _weights(encoder).query("task != 'cola'")


def _weights(encoder: str) -> pd.DataFrame:
    rows = _table(encoder, "4-reinitialisation", "weight_distances")
    rows = rows[rows["examples"] == rows.groupby("task")["examples"].transform("max")]
    return rows.assign(lens="weights", learned=rows["control"] == "", value=rows["relative"])


def _of_chapter_1(encoder: str) -> Iterator[pd.DataFrame]:
    rows = _table(encoder, "1-attention-svcca", "changes_by_layer")
    rows = rows.query("fold == -1 and first == 'pre-trained' and control in ('', 'twin')")
    for lens in ("js", "svcca"):
        yield rows.assign(lens=lens, learned=rows["control"] == "", value=rows[lens])


SOURCES = {
    "toy-bert-seed-0": (_of_chapter_7,),
    "english-bert-seed-0": (_of_chapter_5, _of_chapter_4),
    "all-MiniLM-L6-v2": (_of_chapter_6, _of_chapter_4),
    "all-mpnet-base-v2": (_of_chapter_1, _of_chapter_5, _of_chapter_4),
}


def changes() -> pd.DataFrame:
    """One row per encoder, lens and layer: `value`, the mean change, and `control`, that of the control."""
    rows = [
        table[COLUMNS].assign(encoder=encoder)
        for encoder, readers in SOURCES.items()
        for reader in readers
        for table in reader(encoder)
    ]
    means = pd.concat(rows).query("lens in @LENSES").groupby(["encoder", "lens", "layer", "learned"])["value"].mean()
    return means.unstack().rename(columns={True: "value", False: "control"}).reset_index()


def panel(rows: pd.DataFrame, left: int, top: int) -> str:
    """Bars of one lens on one encoder, as high as the largest, with the control across each."""
    most, step = max(rows["value"].max(), rows["control"].max()), (WIDTH - 14) / len(rows)
    drawn = ""
    for place, (value, control) in enumerate(zip(rows["value"], rows["control"], strict=True)):
        x, bar, line = left + place * step, HEIGHT * value / most, top + HEIGHT * (1 - control / most)
        drawn += f'<rect x="{x:.1f}" y="{top + HEIGHT - bar:.1f}" width="{step - 2:.1f}" height="{bar:.1f}"/>'
        drawn += f'<path d="M{x - 1:.1f},{line:.1f}h{step:.1f}"/>'
    printed = UNITS[rows["lens"].iloc[0]].format(rows["value"].max())
    return f'{drawn}<text class="small" x="{left}" y="{top + HEIGHT + 15}">{printed}</text>\n'


def said(rows: pd.DataFrame) -> str:
    """One panel in words."""
    value, control = (UNITS[rows["lens"].iloc[0]].format(rows[name].iloc[-1]) for name in ("value", "control"))
    first = UNITS[rows["lens"].iloc[0]].format(rows["value"].iloc[0])
    return f"{LENSES[rows['lens'].iloc[0]]} {first} in the first and {value} in the last layer (control {control})"


def _falls(curve: pd.Series) -> list[int]:
    """The layers that have changed less than the one below."""
    return curve.index[curve.diff() < 0].tolist()


def answer(table: pd.DataFrame) -> str:
    """What all encoders have in common, and where they differ, in words.

    Raises:
        ValueError: the records no longer say so.
    """
    curves = {key: rows.set_axis(range(1, len(rows) + 1)) for key, rows in table.groupby(["lens", "encoder"])["value"]}
    similarity = [curve for (lens, _), curve in curves.items() if lens == "rsa"]
    spans = {encoder: curve.max() / curve.min() for (lens, encoder), curve in curves.items() if lens == "weights"}
    deep, most = spans.pop("all-mpnet-base-v2"), max(spans.values())
    places = [curves["js", encoder].idxmax() for encoder in SOURCES if ("js", encoder) in curves]
    rsa, features, weights = (curves[lens, "all-mpnet-base-v2"] for lens in ("rsa", "svcca", "weights"))
    falls = [(name, layer) for lens, name in curves if lens == "rsa" for layer in _falls(curves[lens, name])]
    tops = [*places, features.idxmax(), weights.idxmax()]
    attention, all_weights = next(_of_chapter_1("all-mpnet-base-v2")), _weights("all-mpnet-base-v2")
    sst2 = attention.query("learned and task == 'sst2'").groupby("layer")["value"].mean()
    cola = all_weights.query("learned and task == 'cola'").groupby("layer")["value"].mean()
    told = (
        falls == [("all-mpnet-base-v2", 8)]
        and rsa[7] - rsa[8] < 0.002
        and tops == [3, 6, 12, 11, 12]
        and _falls(features) == [12]
        and sst2.idxmax() == 11
        and cola.max() < 1.2 * cola.min()
    )
    if len(similarity) < 4 or not told or not most < 1.4 < deep:
        raise ValueError("The first page's answer no longer holds of the records: rewrite it in this script.")
    ends = [[curve.iloc[place] for curve in similarity] for place in (0, -1)]
    return (
        "<p>Averaged over tasks, fine-tuning changes the output of a layer more the higher it lies. In all four "
        f"encoders, similarity to the pre-trained encoder falls by {min(ends[0]):.2f} to "
        f"{max(ends[0]):.2f} in the first layer and by {min(ends[1]):.2f} to {max(ends[1]):.2f} in the last. "
        "Neighbours can be alike or change places: all-mpnet's seventh and eighth layers have both changed by "
        f"{rsa[8]:.2f}, and by SVCCA its last layer has changed less than its eleventh "
        f"({features[12]:.2f}, {features[11]:.2f}). The weights follow less: in encoders of six and eight "
        f"layers none moves more than {most:.1f} times as far as another; of all-mpnet's twelve, the last moves "
        f"{deep:.1f} times as far as the least (on CoLA, which is left out, all move about equally far). The encoders "
        "differ in attention, which changes most in the last layer of all-MiniLM and all-mpnet (on SST-2 alone in the "
        "eleventh) and in the third of toy BERTs.</p>"
    )


def picture(table: pd.DataFrame) -> str:
    """The figure as HTML: an inline drawing whose colours follow the theme, and its caption."""
    drawn, words = "", []
    for column, name in enumerate(LENSES.values()):
        drawn += f'<text x="{LEFT + column * WIDTH}" y="18">{name}</text>\n'
    for row, (encoder, title) in enumerate(ENCODERS.items()):
        top, of_encoder = TOP + row * ROW, table[table["encoder"] == encoder]
        drawn += f'<text class="name" x="{LEFT}" y="{top - 6}">{title}</text>\n'
        panels = {lens: of_encoder[of_encoder["lens"] == lens] for lens in LENSES}
        for column, rows in enumerate(panels.values()):
            left = LEFT + column * WIDTH
            empty = f'<text class="small" x="{left}" y="{top + HEIGHT}">not measured</text>\n'
            drawn += empty if rows.empty else panel(rows, left, top)
        words.append(f"{title}: {'; '.join(said(rows) for rows in panels.values() if not rows.empty)}")
    tasks = judging.listed(map(judging.title, sorted(next(_of_chapter_1("all-mpnet-base-v2"))["task"].unique())))
    size = f"0 0 {LEFT + len(LENSES) * WIDTH} {TOP + len(ENCODERS) * ROW}"
    return (
        f'<figure class="lenses"><svg viewBox="{size}" role="img" aria-label="{". ".join(words)}." '
        f'xmlns="http://www.w3.org/2000/svg">\n{drawn}</svg>\n'
        "<figcaption>How much fine-tuning changes each layer, from the first (left) to the last, under four lenses. "
        "The number below is the highest bar. Lines across the bars are controls without a task: weights moved "
        "as far at random, and in the last column a training on shuffled labels. Means over tasks and seeds: toy BERTs "
        "of chapter 7, weights of the others of chapter 4, all-mpnet's attention and features of chapter 1 "
        f"({tasks}) and its similarity of chapter 5 (MNLI and parsing), all else of chapters 5 and 6. Attention is a "
        "divergence, features an SVCCA distance, similarity 1 − RSA, and weights a share of their length.</figcaption>"
        "</figure>"
    )


if __name__ == "__main__":
    print(answer(changes()), picture(changes()), sep="\n")
