# The crawler for any of its parts: a node of the fleet (the default), `scrapy serve`, `scrapy fleet watch`, a worker
# without scrapyd. docs/containers.md says how they go together.
#
#   docker build -t newscrawler .        with Chromium: --build-arg RENDER=1; without s3://: --build-arg S3=

FROM python:3.12-slim-bookworm AS packages
WORKDIR /opt/newscrawler
RUN python -m venv .venv
COPY requirements.lock requirements-render.lock requirements-s3.lock ./
ARG RENDER=""
ARG S3="1"
RUN .venv/bin/python -m pip install --no-cache-dir --require-hashes -r requirements.lock \
    && if [ -n "$RENDER" ]; then .venv/bin/python -m pip install --no-cache-dir --require-hashes -r requirements-render.lock; fi \
    && if [ -n "$S3" ]; then .venv/bin/python -m pip install --no-cache-dir --require-hashes -r requirements-s3.lock; fi
COPY setup.py scrapy.cfg sites.json README.md CHANGELOG.md MANIFEST.in requirements.txt ./
COPY newscrawler ./newscrawler
COPY selectors ./selectors
COPY deploy/container ./deploy/container
RUN .venv/bin/python -m compileall -q newscrawler

FROM python:3.12-slim-bookworm
ARG RENDER=""
# tini passes signals on and reaps what Chromium leaves; versions are those of the base image's Debian
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends tini \
    && if [ -n "$RENDER" ]; then apt-get install -y --no-install-recommends chromium; fi \
    && rm -rf /var/lib/apt/lists/*
RUN groupadd --gid 10001 newscrawler \
    && useradd --uid 10001 --gid 10001 --home-dir /var/lib/newscrawler --create-home newscrawler
COPY --from=packages /opt/newscrawler /opt/newscrawler
ENV PATH=/opt/newscrawler/.venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    DATA_DIR=/var/lib/newscrawler/data SEMANTIC=off \
    HEALTH_URL=http://127.0.0.1:6800/daemonstatus.json
USER 10001:10001
WORKDIR /opt/newscrawler
VOLUME /var/lib/newscrawler
EXPOSE 6800 8642
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["python", "deploy/container/healthy.py"]
ENTRYPOINT ["tini", "--"]
CMD ["sh", "deploy/container/node.sh"]
