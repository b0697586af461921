"""A Ray cluster of several nodes on this machine, in a process of its own; see `Machines` for what it is told.

It reads a line per order and answers each with one: "add CPUS LABEL=VALUE" starts a node and answers with its number,
"remove NUMBER" kills one with all its processes. When its standard input ends, so does the cluster.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

from ray.cluster_utils import Cluster

OBJECTS = 100 * 2**20  # bytes


def say(answer: object) -> None:
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


def main() -> None:
    logging.getLogger("ray").setLevel(logging.ERROR)
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": OBJECTS, "include_dashboard": False},
    )
    nodes: list[Any] = []
    say(cluster.address)
    try:
        for line in sys.stdin:
            what, *rest = line.split()
            if what == "add":
                name, value = rest[1].split("=")
                nodes.append(cluster.add_node(num_cpus=int(rest[0]), object_store_memory=OBJECTS, labels={name: value}))
                say(len(nodes) - 1)
            else:
                cluster.remove_node(nodes[int(rest[0])], allow_graceful=False)
                say("removed")
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main()
