# How many bytes a page has.
echo "METRIC bytes=$(wc -c <"pages/$1")"
