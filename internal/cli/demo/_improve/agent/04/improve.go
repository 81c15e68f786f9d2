package route

import "slices"

// improve makes a tour shorter: wherever two of its legs cross, it uncrosses them (2-opt).
func improve(cities []City, tour []int) []int {
	for uncross(cities, tour) {
	}
	return tour
}

func uncross(cities []City, tour []int) (changed bool) {
	n := len(tour)
	for i := 0; i < n-1; i++ {
		for j := i + 2; j < n; j++ {
			a, b, c, d := cities[tour[i]], cities[tour[i+1]], cities[tour[j]], cities[tour[(j+1)%n]]
			if Distance(a, c)+Distance(b, d) < Distance(a, b)+Distance(c, d)-1e-9 {
				slices.Reverse(tour[i+1 : j+1])
				changed = true
			}
		}
	}
	return changed
}
