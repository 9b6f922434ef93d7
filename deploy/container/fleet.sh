#!/bin/sh
# `scrapy fleet …` in a container: NODES="a=http://node-a:6800/ b=http://node-b:6800/" become scrapy.cfg. The egg is built in a
# copy, as the image's own folder is not written to.
set -eu
: "${NODES:?name the nodes: NODES=\"a=http://node-a:6800/ b=http://node-b:6800/\"}"
: "${SCRAPYD_PASSWORD:?set SCRAPYD_PASSWORD}"
here=$(pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cp -r "$here/newscrawler" "$here/selectors" "$here/setup.py" "$here/sites.json" "$here/requirements.txt" "$here/requirements.lock" \
    "$here/README.md" "$here/CHANGELOG.md" "$here/MANIFEST.in" "$place"
cd "$place"
# The password is not written down: scrapyd-client reads it from the environment.
printf '[settings]\ndefault = newscrawler.settings\n\n[deploy]\nproject = newscrawler\nusername = fleet\npassword = $SCRAPYD_PASSWORD\n' > scrapy.cfg
for node in $NODES; do
    printf '\n[deploy:%s]\nurl = %s\n' "${node%%=*}" "${node#*=}" >> scrapy.cfg
done
scrapy fleet "$@"
