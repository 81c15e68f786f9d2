awk -f src/sort.awk data/numbers.txt | grep '^comparisons'
