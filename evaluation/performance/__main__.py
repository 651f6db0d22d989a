"""`python -m evaluation.performance [MEASUREMENT ...]`: all of them without a name; `--page` only writes the page.

BENCH_SIZES=1000,10000 chooses how many lessons the stores hold, BENCH_FULL=1 adds a million.
"""

import argparse
import os

import django


def main() -> None:
    # Before numpy is imported: a second thread would add its waking up to every product of small arrays.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ["DJANGO_SETTINGS_MODULE"] = "evaluation.performance.settings"
    django.setup()
    from evaluation.performance.peers import installed
    from evaluation.performance.run import rewrite, run
    from evaluation.performance.steps import MEASUREMENTS

    parser = argparse.ArgumentParser(prog="python -m evaluation.performance", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="MEASUREMENT", help=f"of {', '.join(MEASUREMENTS)}")
    parser.add_argument("--page", action="store_true", help="write the page from what was measured before")
    given = parser.parse_args()
    if unknown := set(given.names) - set(MEASUREMENTS):
        parser.error(f"there is no measurement {', '.join(sorted(unknown))}")
    if "peers" in given.names and not installed():
        parser.error(
            "the peers are not installed here; `make bench-peers` measures them in an environment of their own"
        )
    rewrite() if given.page else run(given.names)


if __name__ == "__main__":
    main()
