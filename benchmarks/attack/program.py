"""A program for `--command`: python program.py MODE, the rest is in its environment. It imports nothing of ours.

It notes every evaluation, or every step, in the side log before it prints it.
"""

import json
import os
import sys
import time

STEPS = 5


def value_of(config, step=STEPS):
    return float((config["x"] - 2.0) ** 2 + 0.1 * config["depth"] + config.get("rate", 0.5) + 1.0 / step)


def note(**line):
    file = os.open(os.environ["ATTACK_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, (json.dumps(line) + "\n").encode())
    os.fsync(file)
    os.close(file)


def main():
    config, trial = json.loads(os.environ["FARTHING_CONFIG"]), int(os.environ["FARTHING_TRIAL"])
    if sys.argv[1] == "value":
        time.sleep(0.005)
        note(did="value", trial=trial, config=config, value=value_of(config))
        print(repr(value_of(config)))
        return
    for step in range(int(os.environ["FARTHING_START_STEP"]) + 1, STEPS + 1):
        time.sleep(0.005)
        with open(os.path.join(os.environ["FARTHING_CHECKPOINT_DIR"], f"step-{step}"), "w") as file:
            file.write(str(step))
        note(did="step", trial=trial, config=config, value=value_of(config, step), step=step)
        print(step, repr(value_of(config, step)), flush=True)


main()
