"""Policy `thaw`: curves learned in advance."""

from farthing.policies.thaw.policy import Thaw as Thaw
