"""Read a transcript that somebody else wrote: text in, typed segments and the answer out."""

from thincode.settings import kind
from thincode.trajectory.formats import build

TEXT = r"""First count, then square.
```python
count = sum(1 for n in range(1, 100) if n % 7 == 0)
print(count)
```
```output
14
```
So I need its square.
```python
print(count ** 2)
```
```output
196
```
The answer is $\boxed{196}$.
"""

format = build(kind("thincode.trajectory.formats", "tir"))
segments = format.parse(TEXT)
for segment in segments:
    print(f"{segment.kind:<8} {segment.content!r}")
assert "".join(segment.text for segment in segments) == TEXT  # nothing is lost
print("answer:", format.answer(segments))
