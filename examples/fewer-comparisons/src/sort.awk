function less(a, b) { comparisons++; return a < b }
{ v[NR] = $1 + 0 }
END {
	sort(NR)
	for (i = 1; i <= NR; i++) print v[i]
	print "comparisons " comparisons
}
function sort(n,  i, j, t) {
	for (i = n; i > 1; i--)
		for (j = 1; j < i; j++)
			if (less(v[j + 1], v[j])) { t = v[j]; v[j] = v[j + 1]; v[j + 1] = t }
}
