"""Budget-aware planning for iterative learners (BAPI)."""

from farthing.policies.bapi.policy import BAPI as BAPI
