# Checks that the code parses.
echo 1 | awk -f src/sort.awk
