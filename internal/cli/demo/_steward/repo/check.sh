# Every price has two decimals, and no page is empty.
set -eu
if grep -vE '^[a-z]+,[0-9]+\.[0-9]{2}$' prices/list.csv; then exit 1; fi
for page in pages/*; do test -s "$page"; done
