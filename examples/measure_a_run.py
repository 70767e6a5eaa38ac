"""Measure the records of a run folder again: `python measure_a_run.py RUN/evaluate/1-sft`. Needs no model and no torch."""

import sys

from thincode.evaluation.scorecard import measure
from thincode.evaluation.tables import table
from thincode.grading.records import graded_from_record
from thincode.settings import kind
from thincode.trajectory.store import read

METRICS = ("accuracy", "grounding", "recovery", "code_use", "failures", "structure", "length")

folder = sys.argv[1]
rows = [graded_from_record(record.trajectory, record.annotations) for record in read(folder, ids=False)]
card = measure(rows, [kind("thincode.evaluation.metrics", name) for name in METRICS], name=folder)
for line in table([card]):
    print("  ".join(cell.ljust(40) for cell in line).rstrip())
