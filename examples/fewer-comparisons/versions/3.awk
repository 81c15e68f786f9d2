function less(a, b) { comparisons++; return a < b }
{ v[NR] = $1 + 0 }
END {
	sort(NR)
	for (i = 1; i <= NR; i++) print v[i]
	print "comparisons " comparisons
}
function sort(n,  i, j, t) {
	for (i = 2; i <= n; i++) {
		t = v[i]
		for (j = i - 1; j >= 1 && less(t, v[j]); j--) v[j + 1] = v[j]
		v[j + 1] = t
	}
}
