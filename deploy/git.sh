#!/bin/sh
# Serves bare repositories that everybody who reaches it may push to: that is who the compose file
# lets reach it, which is this machine and the workers.
set -eu

if [ "${1:-}" = health ]; then
    exec git ls-remote --quiet "git://localhost:$GIT_DAEMON_PORT/${GIT_REPOSITORIES%% *}.git"
fi
for name in $GIT_REPOSITORIES; do
    case $name in
    */* | .*) echo "GIT_REPOSITORIES: $name is no name of a repository" >&2 && exit 2 ;;
    esac
    if [ ! -e "$GIT_ROOT/$name.git/HEAD" ]; then
        git init --quiet --bare --initial-branch=main "$GIT_ROOT/$name.git"
    fi
done
exec git daemon --reuseaddr --export-all --enable=receive-pack --port="$GIT_DAEMON_PORT" --base-path="$GIT_ROOT" "$GIT_ROOT"
