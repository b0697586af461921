"""x"""

import importlib
import sys
import time

t = time.time()
m = importlib.import_module("benchmarks.attack." + sys.argv[1])
if sys.argv[1] == "questions":
    m.attack(False, only=sys.argv[2])
else:
    m.attack(quick=len(sys.argv) > 2, **({"budget": 2.5} if sys.argv[1] == "hostile" else {}))
print(time.time() - t)
