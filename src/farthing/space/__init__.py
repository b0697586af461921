"""The search space: parameters, conditions between them, and their translation to the unit cube."""

from farthing.space.parameters import Choice as Choice
from farthing.space.parameters import Integer as Integer
from farthing.space.parameters import Ordered as Ordered
from farthing.space.parameters import Parameter as Parameter
from farthing.space.parameters import Real as Real
from farthing.space.space import Space as Space
