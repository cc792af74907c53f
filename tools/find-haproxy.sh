#!/bin/sh
# Finds HAProxy; as root on Debian installs it where there is none.
has_haproxy() { PATH="$PATH:/usr/sbin" command -v haproxy >/dev/null; }
has_haproxy && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing HAProxy (haproxy)"
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends haproxy; } >/dev/null 2>&1
  has_haproxy && exit 0
fi
echo "no HAProxy was found: the tests of hosts behind a proxy will be skipped. Install it (Debian: haproxy)."
