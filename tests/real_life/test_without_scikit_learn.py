"""Without scikit-learn all the rest of the package works, and using FarthingSearchCV says what to install."""

from __future__ import annotations

import subprocess
import sys

HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sklearn":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def output_of(script: str) -> str:
    ended = subprocess.run([sys.executable, "-c", HIDDEN + script], capture_output=True, text=True, timeout=120)
    return ended.stdout + ended.stderr


def test_a_star_import_brings_all_names():
    assert output_of("from farthing import *\nprint(Study.__name__, tune.__name__)") == "Study tune\n"


def test_members_can_be_listed():
    script = "import farthing, inspect\nprint({'Study', 'tune'} <= dict(inspect.getmembers(farthing)).keys())"
    assert output_of(script) == "True\n"


def test_asking_for_the_name_raises_nothing_and_using_it_says_what_to_install():
    script = (
        "import farthing\n"
        "print(hasattr(farthing, 'FarthingSearchCV'), hasattr(farthing, 'Nothing'))\n"
        "try:\n"
        "    farthing.FarthingSearchCV(None, {}, budget='1m')\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    assert output_of(script) == (
        'True False\nFarthingSearchCV needs scikit-learn 1.7 or newer: pip install "farthing[sklearn]"\n'
    )
