function less(a, b) { comparisons++; return a < b }
{ v[NR] = $1 + 0 }
END {
	sort(NR)
	for (i = 1; i <= NR; i++) print v[i]
	print "comparisons " comparisons
}
function sort(n) { part(1, n) }
function part(from, to,  mid, i, j, k, w) {
	if (from >= to) return
	mid = int((from + to) / 2)
	part(from, mid)
	part(mid + 1, to)
	i = from; j = mid + 1
	for (k = from; k <= to; k++)
		if (j > to || i <= mid && !less(v[j], v[i])) w[k] = v[i++]
		else w[k] = v[j++]
	for (k = from; k <= to; k++) v[k] = w[k]
}
