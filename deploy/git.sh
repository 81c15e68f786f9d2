#!/bin/sh
# Serves bare repositories. Everybody who reaches it may fetch, and may push what hooks/pre-receive accepts: refs that
# begin with one of $GIT_TAKES, or all refs if that is empty. The compose file runs this script twice on the same
# repositories, for people and for workers.
set -eu

if [ "${1:-}" = health ]; then
    exec git ls-remote --quiet "git://localhost:$GIT_DAEMON_PORT/${GIT_REPOSITORIES%% *}.git"
fi
for name in $GIT_REPOSITORIES; do
    case $name in
    */* | .*) echo "GIT_REPOSITORIES: $name is not the name of a repository" >&2 && exit 2 ;;
    esac
    if [ ! -e "$GIT_ROOT/$name.git/HEAD" ]; then
        GIT_DEFAULT_REF_FORMAT=files git init --quiet --bare --object-format=sha1 --initial-branch=main "$GIT_ROOT/$name.git"
    fi
done
# The repositories have no hooks of their own. A push can't add one, and nobody else writes there.
hooks=$(cd "$(dirname "$0")/hooks" && pwd)
GIT_TAKES=${GIT_TAKES:-}
export GIT_TAKES
exec git -c core.hooksPath="$hooks" daemon --reuseaddr --export-all --enable=receive-pack --port="$GIT_DAEMON_PORT" --base-path="$GIT_ROOT" "$GIT_ROOT"
