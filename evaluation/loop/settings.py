"""The site's settings for the processes of an evaluation: a database and a broker of their own.

The database lies on the store's server and is made and dropped by `store.py`; messages are files in a folder of the
run, as `manage.py up` has them, so that no worker of the store takes them.
"""

import os
from pathlib import Path

os.environ.setdefault("LOG_LEVEL", "ERROR")

from sonder_site.celery_settings import celery_settings
from sonder_site.settings import *  # noqa: F403 - every setting of the site, as tests/settings.py has them
from sonder_site.settings import DATABASES

DATABASES["default"]["NAME"] = os.environ["LOOP_DATABASE"]
DATABASES["default"]["OPTIONS"]["options"] = "-c synchronous_commit=off"  # nothing here outlives the run
globals().update(celery_settings("", Path(os.environ["LOOP_FOLDER"])))
