#!/bin/sh
# Waits for Temporal and makes pawl's namespace if it does not exist. It runs once in
# temporalio/admin-tools, before the workers start. The workers register the search attributes.
set -eu

tries=${TRIES:-60}
until why=$(temporal operator cluster health --address "$TEMPORAL_ADDRESS" 2>&1); do
    tries=$((tries - 1))
    if [ "$tries" -le 0 ]; then
        echo "Temporal at $TEMPORAL_ADDRESS does not answer: $why" >&2
        exit 1
    fi
    sleep 1
done
# A loop's history stays this long after its end; its ledger is in git for good.
temporal operator namespace describe --namespace "$PAWL_NAMESPACE" --address "$TEMPORAL_ADDRESS" >/dev/null 2>&1 ||
    temporal operator namespace create --namespace "$PAWL_NAMESPACE" --retention "$PAWL_RETENTION" --address "$TEMPORAL_ADDRESS"
echo "the namespace $PAWL_NAMESPACE is there"
