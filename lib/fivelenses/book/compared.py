"""What `fivelenses.compare` found, as a piece of a page and as files; it loads nothing that measures."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from fivelenses import exhibits
from fivelenses.book.cards import render
from fivelenses.files import written_beside
from fivelenses.papers.measures import name

TWIN, FUNCTIONAL_TWIN, OTHER = "twin", "functional_twin", "other"  # columns of controls


@dataclass(frozen=True)
class Comparison:
    """What changed between two checkpoints.

    Attributes:
        identical: whether all weights of the two encoders are equal, to the last bit.
        changed_layers: those with a weight that is not equal; 0 stands for the embeddings.
        where: the layers at which a change of the function is largest, by what rolling one back does; several where the
            texts do not tell them apart, none where there is no such change or the two are no parent and child.
        facts: what is to be known first, a sentence each.
        summary: where, how much, whether it is more than chance, and what no lens here could have seen.
        measures: a row per layer and lens: `value`, `null`, the interval `low` to `high`, `detection_limit`, and the
            values of `twin`, `functional_twin` and `other` (a second encoder); empty where all weights are equal.
    """

    before: str
    after: str
    identical: bool
    changed_layers: tuple[int, ...]
    where: tuple[int, ...]
    facts: tuple[str, ...]
    summary: str
    measures: pd.DataFrame

    def _drawing(self) -> exhibits.Drawing:
        """A panel per lens: the change at each layer with its interval, its null and both twins."""
        titles = self.measures["lens"].map(name)
        table = self.measures.assign(lens=titles, change="AFTER", value_twin=self.measures[TWIN])
        table["value_functional_twin"] = table[FUNCTIONAL_TWIN].where(titles != "weights")  # far, by construction
        nulls = {"null": "permuted"} | ({OTHER: "another encoder"} if table[OTHER].notna().any() else {})
        layout = exhibits.Layout(panels="lens", height=2.1, far=3)
        drawing = exhibits.curves(table, "value", by="change", y_label="", nulls=nulls, layout=layout)
        for axes, (_, rows) in zip(drawing.figure.axes, table.groupby("lens", sort=False), strict=True):
            axes.fill_between(rows["layer"], rows["low"], rows["high"], color="black", alpha=0.18, linewidth=0)
            axes.set_ylim(top=max(axes.get_ylim()[1], 1.05 * rows["high"].max()))
        return drawing

    @property
    def html(self) -> str:
        """Facts, summary, picture and table, as a piece of a page."""
        parts = [f"<p>{exhibits.escape(sentence, quote=False)}</p>" for sentence in (*self.facts, self.summary)]
        if not self.measures.empty:
            columns = {"layer": "layer", "value": "change (95%)", "null": "null (detection limit)"}
            columns |= {TWIN: "twin (functional)"} | ({OTHER: "other encoder"} if self.measures[OTHER].any() else {})
            forms = {"value": "{value:#.2g} ({low:#.2g} to {high:#.2g})", OTHER: "{:#.2g}"}
            forms |= {"null": "{null:#.2g} ({detection_limit:#.2g})", TWIN: "{twin:#.2g} ({functional_twin:#.2g})"}
            drawing = self._drawing()
            parts.append(drawing.html)
            exhibits.plt.close(drawing.figure)
            for lens, rows in self.measures.round(12).groupby("lens", sort=False):
                caption = f"The change from BEFORE to AFTER at each layer, by {name(lens)}; 0 is none."
                parts.append(exhibits.table_html(rows, caption, columns, forms))
        return "\n".join(parts)

    _repr_html_ = html.fget

    def save(self, folder: Path) -> Path:
        """Write `comparison.html`, `comparison.parquet` and `comparison.json`, and return the first's path."""
        said = vars(self) | {"measures": json.loads(self.measures.to_json(orient="records", double_precision=15))}
        page = render("compare.html", before=self.before, after=self.after, body=self.html)
        text = json.dumps(said, indent=1, ensure_ascii=False)
        contents = {"html": page.encode(), "json": text.encode(), "parquet": self.measures.to_parquet(index=False)}
        for kind, content in contents.items():
            with written_beside(Path(folder) / f"comparison.{kind}") as place:
                place.write_bytes(content)
        return Path(folder) / "comparison.html"
