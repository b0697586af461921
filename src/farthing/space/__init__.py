"""Where to search: parameters, conditions between them, and their translation to the unit cube."""

from farthing.space.choices import Choice as Choice
from farthing.space.choices import Ordered as Ordered
from farthing.space.parameters import Integer as Integer
from farthing.space.parameters import Real as Real
from farthing.space.space import Space as Space
