package route

// Plan returns the order in which to visit the cities; the trip ends where it began. It is the
// shortest of the tours begun at every tenth city.
func Plan(cities []City) []int {
	var best []int
	for start := 0; start < len(cities); start += 10 {
		tour := improve(cities, nearest(cities, start))
		if best == nil || Length(cities, tour) < Length(cities, best) {
			best = tour
		}
	}
	return best
}
