# Does it parse?
echo 1 | awk -f src/sort.awk
