awk -f src/sort.awk data/numbers.txt | grep -v '^comparisons' >sorted.tmp
sort -n data/numbers.txt | cmp - sorted.tmp
