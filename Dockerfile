# The image of every service: web, worker, schedule and the one-time set-up differ by their command alone.
FROM python:3.11-slim-bookworm AS packages
COPY deploy/requirements.lock /tmp/requirements.lock
RUN python -m venv /opt/sonder \
    && /opt/sonder/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r /tmp/requirements.lock

FROM python:3.11-slim-bookworm
# A number that no host user has; the folder of the store is all that it may write.
RUN useradd --uid 10001 --create-home sonder && install -d -o sonder -g sonder /var/lib/sonder
COPY --from=packages /opt/sonder /opt/sonder
WORKDIR /srv/sonder
COPY manage.py LICENSE NOTICE ./
COPY evaluation evaluation
COPY memory memory
COPY review review
COPY sonder_site sonder_site
COPY static static
COPY templates templates
ENV PATH=/opt/sonder/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    OMP_NUM_THREADS=1 \
    OPENBLAS_NUM_THREADS=1 \
    SONDER_VAR=/var/lib/sonder
USER sonder
VOLUME /var/lib/sonder
EXPOSE 8000
# Of the web service; the others answer no HTTP and switch it off.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-m", "sonder_site.probe", "http://127.0.0.1:8000/healthz"]
CMD ["uvicorn", "sonder_site.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--workers", "2", "--no-access-log", "--no-proxy-headers", "--timeout-keep-alive", "75"]
