"""The `thincode` command: verbs that call `runs`; it prints and never computes."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .evaluation import Scorecard
    from .runs.pipeline import Console, Pipeline
    from .runs.recipe import Recipe
    from .settings import Resolved

VERBS = """\
  demo       watch a tiny model learn to think in code on this machine
  run        all steps of a recipe: distill, sft, rl, evaluate, report
  distill    sample a teacher with the interpreter in the loop and filter
  sft        train on what distillation kept
  rl         reinforcement learning in stages
  eval       sample, grade and measure a model
  solve      stream one trajectory for a question of yours
  report     write the page of a run folder
  recipes    list, show or copy the recipes that ship
  doctor     what this machine has and lacks"""

_STEPS = {
    "run": "Does every step the recipe has a section for, in one folder, and writes the report.",
    "distill": "Samples the teacher with the interpreter in the loop; keeps what passes the filters.",
    "sft": "Trains on the trajectories that a distillation kept; writes DIR/model.",
    "rl": "Trains a model by reward, stage after stage; writes DIR/model and a model for each stage.",
    "eval": "Samples a model, grades the answers and writes DIR/scorecard.json.",
}
_LONG_VERB = """\
key.path=value changes one setting, for example seed=2 or evaluate.samples=4.
Ctrl-C stops; the same command with the run's --out and --resume goes on."""
_SOLVE = "Streams one greedy trajectory: the model's text, its blocks, and what they really print."
_RECIPES = "Lists the recipes that ship, prints one, or copies one to change it."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="thincode",
        usage="thincode VERB …",
        description="Teach language models to think in code.",
        epilog=f"verbs:\n{VERBS}\n\n`thincode VERB --help` says more. Settings are changed by key.path=value.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    from . import __version__

    parser.add_argument("--version", action="version", version=f"thincode {__version__}")
    verbs = parser.add_subparsers(dest="verb", prog="thincode", metavar="VERB", help=argparse.SUPPRESS)
    long = argparse.ArgumentParser(add_help=False)
    long.add_argument("--out", type=Path, metavar="DIR", help="run folder to write (default: runs/VERB-DATE)")
    long.add_argument(
        "--plan", action="store_true", help="check and print every setting and where it came from; run nothing"
    )
    long.add_argument("--resume", action="store_true", help="go on where a run in --out stopped")
    long.add_argument("--quiet", action="store_true", help="no progress")
    long.add_argument("--json", action="store_true", help="progress and result as JSON lines")

    _add_verbs(verbs, long)
    return parser


def _add_verbs(verbs: Any, long: argparse.ArgumentParser) -> None:
    def add(name: str, words: str, example: str, *, parents: Sequence[argparse.ArgumentParser] = ()) -> Any:
        return verbs.add_parser(
            name,
            parents=parents,
            usage=f"thincode {name} {example}",
            description=words,
            epilog=_LONG_VERB if parents else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    add("demo", "Runs the recipe tiny/demo, which needs no network and no GPU.", "[key.path=value …]", parents=[long])
    for name, words in _STEPS.items():
        verb = add(name, words, "RECIPE [--out DIR] [key.path=value …]", parents=[long])
        verb.add_argument("recipe", metavar="RECIPE", help="a YAML file, or one that ships, for example tiny/demo")
        if name == "sft":
            verb.add_argument(
                "--data", type=Path, metavar="DIR", help="folder of a distillation (or sft.data in the recipe)"
            )
        if name in ("rl", "eval"):
            verb.add_argument("--model", metavar="DIR", help="model folder, or the id of a model on the hub")
        if name == "eval":
            verb.add_argument("--run", type=Path, metavar="DIR", help="the last model of this run instead")

    solve = add("solve", _SOLVE, '"QUESTION" (--run DIR | --model DIR) [key.path=value …]')
    solve.add_argument("question", metavar="QUESTION")
    which = solve.add_mutually_exclusive_group(required=True)
    which.add_argument("--run", type=Path, metavar="DIR", help="the last model of this run")
    which.add_argument("--model", metavar="DIR", help="model folder, or the id of a model on the hub")
    solve.add_argument(
        "--recipe",
        default="tiny/demo",
        help="whose format, limits and budget count (default: the run's, else tiny/demo)",
    )

    report = add("report", "Writes one HTML file of a run folder: it opens from disk, without a server.", "DIR")
    report.add_argument("folder", type=Path, metavar="DIR", help="run folder")
    report.add_argument("--out", type=Path, metavar="FILE", help="where to write (default: report.html in the folder)")

    recipes = add("recipes", _RECIPES, "[list | show NAME | copy NAME [TO]]")
    recipes.add_argument("action", choices=("list", "show", "copy"), nargs="?", default="list")
    recipes.add_argument("name", metavar="NAME", nargs="?", help="for example tiny/demo")
    recipes.add_argument("to", metavar="TO", nargs="?", type=Path, help="file or folder (default: here)")

    doctor = add("doctor", "Prints versions, device, and which layers isolate the interpreter here.", "[--json]")
    doctor.add_argument("--json", action="store_true", help="as JSON")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns:
        0 when all went well, 1 for a fault of ours, 2 for a mistake the user can mend, 3 when infrastructure failed, 130
        after Ctrl-C.
    """
    parser = _parser()
    words, rest = parser.parse_known_args(argv)
    words.overrides = [word for word in rest if re.match(r"\w+(\.\w+)*=", word)]
    unknown = [word for word in rest if word not in words.overrides]
    if unknown or (words.overrides and words.verb not in _TAKES_OVERRIDES):
        parser.error(f"can't understand {' '.join(unknown or words.overrides)}; try thincode {words.verb or ''} --help")
    if words.verb is None:
        parser.print_help()
        return 0
    from .errors import ThincodeError

    try:
        code: int = globals()[f"_{words.verb}"](words)
    except ThincodeError as error:
        print(f"thincode {words.verb}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        again = f"; go on with the same command, --out {words.out} and --resume" if words.verb in _LONG else ""
        print(f"\nthincode {words.verb}: stopped{again}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141
    return code


_LONG = ("demo", *_STEPS)
_TAKES_OVERRIDES = (*_LONG, "solve")


# --- the verbs -------------------------------------------------------------------------------------------------------


def _demo(words: argparse.Namespace) -> int:
    words.recipe = "tiny/demo"
    return _run(words)


def _run(words: argparse.Namespace) -> int:
    resolved = _load(words)
    if words.plan:
        return _print_plan(words, resolved)
    from . import report
    from .runs import pipeline

    with _open(words, resolved) as (work, out):
        cards = pipeline.run(work)
        page = report.build(out)
    _print_result(words, cards, out)
    _print_line(words, f"report: {page}")
    return 0


def _distill(words: argparse.Namespace) -> int:
    resolved = _load(words)
    if words.plan:
        return _print_plan(words, resolved)
    with _open(words, resolved) as (work, out):
        funnel = work.distill(out)
    if words.json:
        print(json.dumps(funnel))
        return 0
    print(f"{funnel['sampled']} sampled, {funnel['kept']} kept in {out}")
    for reason, count in funnel["dropped"].items():
        print(f"  {count:>7}  {reason}")
    return 0


def _sft(words: argparse.Namespace) -> int:
    if words.data is not None:
        words.overrides.append(f"sft.data={json.dumps(str(words.data))}")
    resolved = _load(words)
    if words.plan:
        return _print_plan(words, resolved)
    from .errors import RecipeError

    data = resolved.value.sft.data if resolved.value.sft else None
    if data is None:
        raise RecipeError("sft.data: name the run folder of a distillation with --data DIR")
    with _open(words, resolved) as (work, out):
        model = work.sft(out, data=Path(data))
    _print_line(words, f"model: {model}", model=str(model))
    return 0


def _rl(words: argparse.Namespace) -> int:
    if words.model is not None:
        words.overrides.append(f"rl.model={json.dumps(words.model)}")
    resolved = _load(words)
    if words.plan:
        return _print_plan(words, resolved)
    from .errors import RecipeError

    start = resolved.value.rl.model if resolved.value.rl else None
    if start is None:
        raise RecipeError("rl.model: name the model folder to start from with --model DIR")
    with _open(words, resolved) as (work, out):
        model = work.rl(out, start=Path(start))
    _print_line(words, f"model: {model}", model=str(model))
    return 0


def _eval(words: argparse.Namespace) -> int:
    from .runs.pipeline import last_model

    model = last_model(words.run) if words.run is not None else Path(words.model) if words.model else None
    if model is not None:
        words.overrides.append(f"evaluate.model={json.dumps(str(model))}")
    resolved = _load(words)
    if words.plan:
        return _print_plan(words, resolved)
    section = resolved.value.evaluate
    with _open(words, resolved) as (work, out):
        folder = Path(section.model) if section is not None and section.model else None
        card = work.evaluate(out, name=_name_of(words.run, folder), model=folder)
    _print_result(words, [card], out)
    return 0


def _name_of(run: Path | None, model: Path | None) -> str:
    if run is not None:
        return run.name
    return model.name if model is not None else "scripted"


def _solve(words: argparse.Namespace) -> int:
    from .runs import solve
    from .runs.pipeline import last_model
    from .runs.recipe import Recipe
    from .settings import load

    recipe: Any = words.recipe
    if words.run is not None and (words.run / "recipe.resolved.yaml").exists():
        recipe = words.run / "recipe.resolved.yaml"
    resolved = load(Recipe, recipe, words.overrides)
    model = str(last_model(words.run)) if words.run is not None else words.model
    trajectory = solve.run(resolved.value, question=words.question, model=model, watch=_write_live)
    print()
    print(f"answer: {trajectory.answer if trajectory.answer is not None else 'none'}  ({trajectory.end.value})")
    return 0


def _report(words: argparse.Namespace) -> int:
    from . import report

    print(report.build(words.folder, words.out))
    return 0


def _recipes(words: argparse.Namespace) -> int:
    from .errors import RecipeError
    from .settings import recipe_text, recipes

    if words.action == "list":
        for name in recipes():
            print(f"{name:<12}  {recipe_text(name).splitlines()[0].removeprefix('# ')}")
        return 0
    if words.name is None:
        raise RecipeError(f"name a recipe: {', '.join(recipes())}")
    text = recipe_text(words.name)
    if words.action == "show":
        print(text, end="")
        return 0
    target = words.to or Path(f"{words.name.rpartition('/')[2]}.yaml")
    target = target / f"{words.name.rpartition('/')[2]}.yaml" if target.is_dir() else target
    if target.exists():
        raise RecipeError(f"{target}: exists already; name another file")
    target.write_text(text, encoding="utf-8")
    print(target)
    return 0


def _doctor(words: argparse.Namespace) -> int:
    from . import doctor

    found = doctor.report()
    print(json.dumps(found, indent=2) if words.json else "\n".join(doctor.lines(found)))
    return 0


# --- what the verbs share --------------------------------------------------------------------------------------------


def _load(words: argparse.Namespace) -> Resolved[Recipe]:
    from .runs.recipe import Recipe
    from .settings import load

    return load(Recipe, words.recipe, words.overrides)


def _print_plan(words: argparse.Namespace, resolved: Resolved[Recipe]) -> int:
    if words.json:
        print(json.dumps({path: {"value": value, "from": origin} for path, value, origin in resolved.origins}))
        return 0
    width = max(len(path) for path, _, _ in resolved.origins)
    for path, value, origin in resolved.origins:
        print(f"{path:<{width}}  {json.dumps(value, ensure_ascii=False):<24}  {origin}")
    return 0


class _open:  # noqa: N801 - used like a function
    """Opens run folder, workshop and console for a verb, in that order."""

    def __init__(self, words: argparse.Namespace, resolved: Resolved[Recipe]) -> None:
        self._words = words
        self._resolved = resolved
        if words.resume and words.out is None:
            from .errors import RunFolderError

            raise RunFolderError("--resume: which run? Name its folder with --out DIR")
        words.out = words.out or Path("runs") / f"{words.verb}-{time.strftime('%Y%m%d-%H%M%S')}"
        self._out: Path = words.out

    def __enter__(self) -> tuple[Pipeline, Path]:
        from contextlib import ExitStack

        from .runs.pipeline import Pipeline
        from .runs.workshop import Workshop

        self._stack = ExitStack()
        if self._out.is_dir() and any(self._out.iterdir()) and not self._words.resume:
            from .errors import RunFolderError

            raise RunFolderError(f"{self._out}: exists already; go on with --resume, or name another folder with --out")
        shop = self._stack.enter_context(Workshop(self._resolved.value))
        console = _console(self._words)
        return Pipeline(self._resolved, out=self._out, shop=shop, console=console), self._out

    def __exit__(self, *details: Any) -> None:
        self._stack.__exit__(*details)


def _console(words: argparse.Namespace) -> Console:
    from functools import partial

    from .runlog import Progress
    from .runs.pipeline import Console

    say = (lambda text: None) if words.quiet else (lambda text: print(text, file=sys.stderr))
    return Console(progress=partial(Progress, quiet=words.quiet, json=words.json), say=say)


def _print_result(words: argparse.Namespace, cards: Sequence[Scorecard], out: Path) -> None:
    from .evaluation.scorecard import table
    from .runs.pipeline import split_of_time

    if words.json:
        print(json.dumps({"out": str(out), "scorecards": [card.name for card in cards]}))
        return
    rows = [row for number, row in enumerate(table(cards)) if number == 0 or _is_headline(row[0])]
    if len(rows) > 1:
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    times = split_of_time(out)
    if times:
        parts = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in times.items())
        print(f"\ntime: {sum(times.values()):.0f} s ({parts})")


def _is_headline(name: str) -> bool:
    """Whether a figure belongs into the table on the terminal; the scorecard and the page have all of them."""
    arm, _, rest = name.rpartition("/") if name.startswith(("greedy/", "swapped/")) else ("", "", name)
    return (rest.startswith("avg@") and "(" not in rest and "/" not in rest) or (not arm and name in _HEADLINES)


_HEADLINES = ("grounded", "format adherence", "recovery@1", "block pass rate", "calls", "generated", "end/finished")


def _print_line(words: argparse.Namespace, text: str, **values: Any) -> None:
    print(json.dumps(values) if words.json and values else text)


def _write_live(piece: str) -> None:
    sys.stdout.write(piece)
    sys.stdout.flush()
