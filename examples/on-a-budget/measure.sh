cut -d' ' -f1 cases.txt | sed -f src/plural.sed | paste -d' ' - cases.txt | awk '$1 == $3 {n++} END {print n + 0}'
