"""Spark against the local engine, growth, Kafka to release; and docs/scale.md from what was measured.

    python -m benchmarks.spark known        # five to ten minutes of processor time: docs/results/scale-cluster.csv
    python -m benchmarks.spark unseen       # two minutes: a size that the model is to predict, in the same table
    python -m benchmarks.spark topic        # a minute or two: scale-topic.csv
    python -m benchmarks.spark driver       # half a minute: scale-driver.csv
    python -m benchmarks.spark page         # docs/scale.md anew, from its template and these tables

It takes Java and the Kafka broker (`make services`). What is measured is processor time and bytes; of other work on the
machine both hardly tell.
"""

from __future__ import annotations

import argparse

from benchmarks.spark.measure import measure_cluster, measure_driver, measure_topic
from benchmarks.spark.page import PAGE, page


def main() -> None:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["known", "unseen", "topic", "driver", "page"])
    parser.add_argument("--turns", type=int, default=3)
    wanted = parser.parse_args()
    if wanted.what in ("known", "unseen"):
        measure_cluster(wanted.what, turns=wanted.turns)
    elif wanted.what == "topic":
        measure_topic(turns=wanted.turns)
    elif wanted.what == "driver":
        measure_driver()
    else:
        PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
