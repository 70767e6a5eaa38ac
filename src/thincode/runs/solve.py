"""Solve: one trajectory for one question, live."""

from __future__ import annotations

from ..engines import Sampling
from ..rollout import Budget
from ..rollout._turn import Watch
from ..rollout.episode import Ask
from ..settings import kind
from ..training import models
from ..trajectory import Address, Trajectory
from ..trajectory.tokenizer import Tokenizer
from .recipe import Recipe
from .workshop import Workshop


def run(recipe: Recipe, *, question: str, model: str, watch: Watch) -> Trajectory:
    """Stream one greedy trajectory.

    Args:
        recipe: format, limits, and the budget of its evaluation.
        question: asked as it is.
        model: a model folder, or the id of one on the hub.
        watch: shown each piece of text, ours and the model's, as it comes.
    """
    budget = recipe.evaluate.budget if recipe.evaluate is not None else Budget()
    with Workshop(recipe) as shop:
        folder = models.local_folder(model)
        tokenizer = Tokenizer.load(folder)
        local = kind("thincode.engines", "local", model=str(folder), rows=1)
        engine = local.module.open(local.settings, tokenizer=tokenizer)
        setting = shop.setting(tokenizer=tokenizer, budget=budget, sampling=Sampling(temperature=0.0))
        ask = Ask(Address(recipe.seed, "solve", 0, "question", 0), question)
        trajectory = shop.crowd(engine).roll_one(ask, setting, watch=watch)
        shop.close_engine(engine)
    return trajectory
