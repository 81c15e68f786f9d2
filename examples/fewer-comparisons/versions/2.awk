function less(a, b) { comparisons++; return a < b }
{ v[NR] = $1 + 0 }
END {
	sort(NR)
	for (i = 1; i <= NR; i++) print v[i]
	print "comparisons " comparisons
}
function sort(n,  i, j, m, t) {
	for (i = 1; i < n; i++) {
		m = i
		for (j = i + 1; j <= n; j++)
			if (less(v[j], v[m])) m = j
		t = v[i]; v[i] = v[m]; v[m] = t
	}
}
