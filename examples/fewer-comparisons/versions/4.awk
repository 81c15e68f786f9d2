function less(a, b) { comparisons++; return a < b }
{ v[NR] = $1 + 0 }
END {
	sort(NR)
	for (i = 1; i <= NR; i++) print v[i]
	print "comparisons " comparisons
}
function sort(n) {
	return n; }}
