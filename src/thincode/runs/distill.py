"""Distill: a teacher thinks with the interpreter in the loop; what passes the filters teaches the student.

for each problem:                      sample τ = t1, c1, o1, …, cN, oN, a from the teacher
    keep τ if it is correct, every block ran, N ≥ 3, and |t1| / |τ| < 0.5      (ThinC's four filters)
    count every rejection by its reason
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from ..engines import Context
from ..engines.scripted import Script
from ..errors import RecipeError
from ..grading import Graded, records
from ..grading.answers import Grader
from ..problems import Problem, WorkedSolution
from ..rollout.episode import Ask
from ..runlog import RunFolder
from ..settings import Kind
from ..trajectory import Address, Trajectory
from ..trajectory.formats import Format, Hands
from ..trajectory.store import Store
from . import sieve
from .recipe import DistillSettings
from .speakers import ready
from .workshop import ShowProgress, Workshop, load_problems

STAGE = "distill"


def run(
    settings: DistillSettings, *, folder: RunFolder, shop: Workshop, progress: ShowProgress, say: Callable[[str], None]
) -> dict[str, Any]:
    """Sample the teacher on every problem and judge each trajectory.

    Args:
        settings: problems, teacher, filters, budget.
        folder: gets `trajectories.jsonl`, `verdicts.jsonl` and `funnel.json`. Records that are there already are not sampled
            again.
        shop: interpreter, event loop, format.
        progress: makes the line that shows how far it is.
        say: told who teaches, and how.

    Returns:
        The funnel: problems, sampled, dropped by reason, kept.
    """
    problems = {problem.id: problem for problem in load_problems(settings.problems)}
    solutions = _solutions(settings, problems, shop) if settings.teacher.name == "scripted" else {}
    teacher = ready(
        settings.teacher,
        shop=shop,
        say=say,
        place="distill.teacher",
        script=lambda: teacher_script(solutions, shop.format),
        shots=settings.prompt,
    )
    asks = [
        Ask(Address(shop.recipe.seed, STAGE, 0, problem.id, sample), problem.question, versions=teacher.versions)
        for problem in problems.values()
        for sample in range(settings.samples)
    ]
    with Store(folder.path) as store, Grader() as grader:
        there = store.keys()

        def note(trajectory: Trajectory) -> None:
            problem = problems[trajectory.address.problem]
            graded = Graded(problem, trajectory, grader.grade(trajectory.answer, problem.answer))
            if trajectory.address.key not in there:
                store.append(trajectory, records.annotations(graded))
                line.advance(1)

        setting = shop.setting(
            tokenizer=teacher.tokenizer, budget=settings.budget, sampling=settings.sampling, shots=teacher.shots
        )
        missing = [ask for ask in asks if ask.address.key not in there]
        with progress(STAGE, total=len(asks), unit="trajectories", done=len(there)) as line:
            teacher.crowd.roll(missing, setting, on_finished=note)
        store.sync()
        shop.close_engine(teacher.engine)
        charged = cost(store, settings.teacher)
    flaws = {name: solution.flaw for name, solution in solutions.items()}
    return sieve.run(settings, folder=folder.path, shop=shop, progress=progress, flaws=flaws, more=charged)


def cost(store: Store, teacher: Kind) -> dict[str, Any]:
    """What a served teacher charged for all records: tokens, and money where its settings have prices."""
    usage: Counter[str] = Counter()
    for record in store.records(ids=False):
        usage.update(record.trajectory.usage)
    if not usage:
        return {}
    found: dict[str, Any] = {"usage": dict(usage)}
    prices = getattr(teacher.settings, "prices", None)
    if prices is not None:
        money = usage["prompt_tokens"] * prices.prompt + usage["generated_tokens"] * prices.generated
        found["cost"] = round(money / 1e6, 4)
    return found


def _solutions(settings: DistillSettings, problems: Mapping[str, Problem], shop: Workshop) -> dict[str, WorkedSolution]:
    """The programs that a scripted teacher writes, by problem."""
    source = settings.problems
    if not hasattr(source.module, "worked_solution"):
        raise RecipeError(
            f"distill.problems: {source.name!r} has no worked solutions, so a scripted teacher can't solve them"
        )
    solutions: dict[str, WorkedSolution] = {}
    for problem in problems.values():
        seed = Address(shop.recipe.seed, STAGE, 0, problem.id, 0).seed("solution")
        solution = source.module.worked_solution(source.settings, problem, seed=seed)
        if solution is not None:
            solutions[problem.id] = solution
    return solutions


def teacher_script(solutions: Mapping[str, WorkedSolution], format: Format) -> Script:
    """A script that writes each problem's worked solution in `format`, block by block, from what was really printed.

    In a format without code it works the same steps in words, to the answer that the program would print. Where there is one
    program and no more, all blocks are that program; one that needs to see an output first can't be written then.
    """
    turns_of_two = len(format.teacher_turns("", (), ["pass", "pass"], None))

    def say(context: Context) -> str:
        solution = solutions.get(context.question_id)
        if solution is None:
            return "I know no program for this."
        if not turns_of_two:
            written = format.teacher_turns(
                solution.plan, solution.text or solution.thoughts, (), solution.answer or None
            )
            return written[-1] if written else "Only a run can tell the answer."
        if turns_of_two == 1:
            return _one_program(solution, format)
        shown = [output.strip() for output in context.outputs]
        hands = format if isinstance(format, Hands) else None
        printed = [hands.values(text) for text in shown] if hands else shown
        done = len(printed)
        blocks = [block(printed[:index]) for index, block in enumerate(solution.blocks[: done + 1])]
        blocks = hands.handed(blocks, shown) if hands else blocks
        answer = printed[-1].splitlines()[-1] if done == len(solution.blocks) and printed[-1] else None
        if done >= len(solution.blocks) and answer is None:
            return "No answer was printed."
        turns = format.teacher_turns(solution.plan, solution.thoughts, blocks, answer)
        return turns[min(done, len(turns) - 1)]

    return say


def _one_program(solution: WorkedSolution, format: Format) -> str:
    try:
        blocks = [block(()) for block in solution.blocks]
    except IndexError:
        return "Only a run can tell what comes next."
    return format.teacher_turns(solution.plan, solution.thoughts, blocks, None)[0]
