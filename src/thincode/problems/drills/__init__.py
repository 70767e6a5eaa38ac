"""Generated problem families. Each public module here is one family; see `_family.py` for what it must give.

from thincode.problems.drills import family
family("lcm").gold(6, 8, 50)  # 72
"""

from ._cuts import Cut as Cut
from ._cuts import Step as Step
from ._family import SPLITS as SPLITS
from ._family import Family as Family
from ._family import Flaw as Flaw
from ._family import Language as Language
from ._family import Params as Params
from ._family import Split as Split
from ._family import families as families
from ._family import family as family
from ._family import lines as lines
from ._family import split_of as split_of
