"""`python -m evaluation.performance [MEASUREMENT ...]`, all of them without a name.

BENCH_SIZES=1000,10000 chooses how many lessons the stores hold, BENCH_FULL=1 adds a million.
"""

import os
import sys

import django


def main() -> None:
    # Before numpy is imported: a second thread would add its waking up to every product of small arrays.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    os.environ["DJANGO_SETTINGS_MODULE"] = "evaluation.performance.settings"
    django.setup()
    from evaluation.performance.run import run

    run(sys.argv[1:])


if __name__ == "__main__":
    main()
