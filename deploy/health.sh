#!/bin/sh
# Healthy is: a process is this host's worker. It has the lock from when it reached Temporal to its
# end, however it ends, and goes on by itself when Temporal was away.
set -eu

status=0
flock --nonblock --shared --conflict-exit-code 75 "$PAWL_HOME/worker.lock" true || status=$?
case $status in
75) exit 0 ;;
0) echo "no worker runs" >&2 && exit 1 ;;
*) exit 1 ;;
esac
