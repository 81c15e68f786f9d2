#!/bin/sh
# The container is healthy while a process is this host's worker. The worker holds the lock from the moment it has
# reached Temporal until it ends, however it ends. It continues by itself after Temporal was away.
set -eu

status=0
flock --nonblock --shared --conflict-exit-code 75 "$PAWL_HOME/worker.lock" true || status=$?
case $status in
75) exit 0 ;;
0) echo "no worker runs" >&2 && exit 1 ;;
*) exit 1 ;;
esac
