"""The parameters of chapter 5, after Merchant et al. (2020)."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, field_validator, model_validator

from fivelenses.runs.parameters import EncoderParameters, Seed, Share, number_of

if TYPE_CHECKING:
    from fivelenses.checkpoints.specification import Specification


class Merchant2020(EncoderParameters):
    """Chapter 5, after Merchant et al. (2020).

    Attributes:
        pretrained: encoders that differ in their pre-training seed; the first is `encoder`, which is also probed,
            frozen and truncated.
        frozen: highest frozen layers (Figure 3), or shares of the layers; 0 freezes the embeddings alone, and nothing
            frozen is always there.
        truncated: numbers of layers kept (Figure 4), or shares of them; all of them is always there.
        ablated: the tasks, of those that are run, for which encoders are also frozen and truncated; all when None.
        halved: other tasks, for which they are at half of the layers alone.
        edge_tasks: edge-probing tasks.
        probe_targets: training targets of each, at most.
        probe_learning_rate, probe_validate_every, probe_validations, probe_width, probe_seeds: of the edge probes.
        probe_validate_every_of: edge-probing task to its own `probe_validate_every`.
        codelength_tasks: edge-probing tasks of which codelengths are measured.
        structural_sentences: training sentences of the structural probes, at most.
        similarity_tokens, similarity_examples: of each input on which similarity is measured, at most.
        max_tokens: a sentence that probes read is cut to.
    """

    heads: ClassVar[tuple[str, ...]] = ("sequence", "span", "biaffine")
    also_read: ClassVar[tuple[str, ...]] = ("wikitext", "parsing")  # running text, and the trees of structural probes
    counting_layers: ClassVar[tuple[str, ...]] = ("frozen", "truncated")

    pretrained: tuple[str, ...] = Field(min_length=1)
    frozen: tuple[NonNegativeInt | Share, ...] = ()
    truncated: tuple[PositiveInt | Share, ...] = ()
    ablated: tuple[str, ...] | None = None
    halved: tuple[str, ...] = ()
    edge_tasks: tuple[str, ...] = Field(min_length=1)
    probe_targets: Annotated[int, Field(ge=20)]
    probe_learning_rate: PositiveFloat = 1e-4
    probe_validate_every: PositiveInt = 500
    probe_validate_every_of: dict[str, PositiveInt] = {}
    probe_validations: PositiveInt = 200
    probe_width: PositiveInt = 256
    probe_seeds: tuple[Seed, ...] = Field(min_length=1, default=(0,))
    codelength_tasks: tuple[str, ...] = Field(min_length=1)
    structural_sentences: Annotated[int, Field(ge=4)]
    similarity_tokens: Annotated[int, Field(ge=3)] = 5000
    similarity_examples: PositiveInt = 1000
    max_tokens: Annotated[int, Field(ge=4)] = 128

    @field_validator("edge_tasks", "codelength_tasks", "probe_validate_every_of")
    @classmethod
    def _known_edge_tasks(cls, value):
        from fivelenses.tasks.edge_tasks import find_edge_task

        for name in value:
            find_edge_task(name)
        return value

    @model_validator(mode="after")
    def _begins_with_the_encoder(self):
        if self.pretrained[0] != self.encoder:
            raise ValueError(f"pretrained has to begin with encoder, {self.encoder}")
        for name in self.codelength_tasks:
            if name not in self.edge_tasks:
                raise ValueError(f"codelength_tasks names {name}, which is not among edge_tasks")
        return self

    def encoders_used(self) -> tuple[str, ...]:
        return self.pretrained

    def whole(self) -> "list[Specification]":
        """The specifications of the models without frozen or removed layers."""
        return [one for one in self.specifications() if not one.frozen and one.truncated is None]

    def probed(self) -> "list[Specification]":
        """Those of `whole` that were tuned from `encoder`."""
        return [one for one in self.whole() if one.encoder == self.encoder]

    def tuned_on(self, model: str) -> "list[Specification]":
        """Those of `probed` that are behind the name of a probed model: none for the pre-trained encoder."""
        return [one for one in self.probed() if one.task == model]

    def trainings(self, task: str, encoder: str, rows: int, depth: int) -> list[dict]:
        shared = {"schedule": self.schedule_of(task, encoder), "examples": self.examples_of(task)}
        if encoder in self.pretrained[1:]:
            return [{"seed": self.seeds[0]} | shared]
        frozen, truncated = self.frozen, self.truncated
        if self.ablated is not None and task not in self.ablated:
            frozen = truncated = (0.5,) if task in self.halved else ()
        tops, keeps = ([number_of(one, depth) for one in values] for values in (frozen, truncated))
        changes = [{}]
        changes += [{"frozen": tuple(range(top + 1))} for top in dict.fromkeys(tops) if top <= depth]
        changes += [{"truncated": kept} for kept in dict.fromkeys(keeps) if 0 < kept < depth]
        return [{"seed": seed} | shared | change for change in changes for seed in self.seeds]
