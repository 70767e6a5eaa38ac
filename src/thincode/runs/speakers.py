"""Who speaks in a run: opens the engine a recipe names, finds out how it can speak, and says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from ..engines import Engine
from ..engines.scripted import Script
from ..errors import RecipeError
from ..interpreter.presets import Keeps
from ..rollout import prompt
from ..rollout.crowd import Crowd
from ..rollout.prompt import Shots
from ..settings import Kind
from ..trajectory.tokenizer import Tokenizer
from .workshop import Workshop


@dataclass(frozen=True)
class Speaker:
    """An engine that is ready, and what its episodes need."""

    crowd: Crowd
    tokenizer: Tokenizer | None
    """Of an engine that speaks ids."""
    shots: Shots | None
    versions: Mapping[str, str]
    """What each record says of it: engine, model, way, prompt."""

    @property
    def engine(self) -> Engine:
        """Who is behind it."""
        return self.crowd.engine


def ready(
    chosen: Kind,
    *,
    shop: Workshop,
    say: Callable[[str], None],
    place: str,
    script: Callable[[], Script],
    model: Path | None = None,
    shots: str | None = None,
) -> Speaker:
    """The engine a recipe names, asked whether and how it can speak.

    Args:
        chosen: a kind of `engines`.
        shop: event loop, schedule; closes nothing of it.
        say: told in one line who speaks and how.
        place: of `chosen` in the recipe, for messages.
        script: what a scripted engine says; called for one only.
        model: folder of the model that a local engine loads; a served one has its tokenizer there.
        shots: name of a prompt file.

    Raises:
        RecipeError: no model is named where one is needed, no server answers, it refuses the key, or serves something else.
        ModelError: the model's folder can't be read.
        DataError: there is no such prompt file.
    """
    examples = prompt.load(shots) if shots is not None else None
    if examples is not None and shop.in_effect["keeps"] == Keeps.NOTHING:
        examples = examples.standing_alone()
    engine, tokenizer = _open(chosen, shop=shop, place=place, script=script, model=model)
    try:
        facts = shop.loop.call(engine.prepare())
    except BaseException:
        shop.close_engine(engine)
        raise
    versions = {"engine": chosen.name, **facts}
    if examples is not None:
        versions["prompt"] = examples.version
    if facts:
        say(f"{place}: " + ", ".join(f"{name} {value}" for name, value in versions.items()))
        if examples is None and shop.format.user_message("?") == "?":
            say(
                f"{place}: hears the bare question, as format.instruction is empty; format=NAME brings the format's own"
            )
    return Speaker(shop.crowd(engine), tokenizer, examples, versions)


def _open(
    chosen: Kind, *, shop: Workshop, place: str, script: Callable[[], Script], model: Path | None
) -> tuple[Engine, Tokenizer | None]:
    module, settings = chosen.module, chosen.settings
    engine: Engine
    if chosen.name == "scripted":
        engine = module.open(settings, script=script())
        return engine, None
    tokenizer = Tokenizer.load(model) if model is not None else None
    if chosen.name == "local":
        model = model or (Path(settings.model) if settings.model else None)
        if model is None:
            if place == "evaluate.engine":
                raise RecipeError("evaluate.model: name a model folder with --model DIR or --run DIR")
            raise RecipeError(f"{place}.model: name a model folder")
        tokenizer = tokenizer or Tokenizer.load(model)
        settings = replace(settings, model=str(model), rows=shop.recipe.live)
        engine = module.open(settings, tokenizer=tokenizer, schedule=shop.recipe.schedule.value)
        return engine, tokenizer
    if chosen.name == "vllm":
        served = module.open(settings, tokenizer=tokenizer)
        return served, served.tokenizer
    engine = module.open(settings)
    return engine, tokenizer if engine.speaks_ids else None
