"""The WSGI application, for servers that speak nothing newer."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonder_site.settings")
application = get_wsgi_application()
