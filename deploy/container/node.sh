#!/bin/sh
# A node of the fleet: scrapyd, with the name "fleet" and the password of SCRAPYD_PASSWORD, on every address of the container.
set -eu
: "${SCRAPYD_PASSWORD:?scrapyd runs code for whoever reaches it: set SCRAPYD_PASSWORD}"
: "${REDIS_URL:?workers of a node share a queue: set REDIS_URL}"
place=${NODE_DIR:-/var/lib/newscrawler/scrapyd}
mkdir -p "$place"
umask 077
cat > "$place/scrapyd.conf" <<END
[scrapyd]
bind_address      = ${SCRAPYD_ADDRESS:-0.0.0.0}
http_port         = ${SCRAPYD_PORT:-6800}
username          = fleet
password          = $SCRAPYD_PASSWORD
poll_interval     = 1.0
max_proc_per_cpu  = 1
eggs_dir          = $place/eggs
dbs_dir           = $place/dbs
logs_dir          = $place/logs
jobs_to_keep      = 20
finished_to_keep  = 200
END
cd "$place"
exec scrapyd --pidfile=
