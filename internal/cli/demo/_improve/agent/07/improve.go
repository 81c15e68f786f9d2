package route

import "slices"

// improve makes a tour shorter: it uncrosses legs (2-opt) for as long as that helps, then moves
// a short chain of cities to where it fits better (Or-opt), until neither helps.
func improve(cities []City, tour []int) []int {
	for {
		for uncross(cities, tour) {
		}
		if !move(cities, tour) {
			return tour
		}
	}
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

// move takes up to three cities out of the tour and puts them in where they fit best.
func move(cities []City, tour []int) bool {
	n := len(tour)
	way := func(i, j int) float64 { return Distance(cities[tour[(i+n)%n]], cities[tour[(j+n)%n]]) }
	for size := 1; size <= 3 && size < n-1; size++ {
		for from := 0; from+size <= n; from++ {
			saved := way(from-1, from) + way(from+size-1, from+size) - way(from-1, from+size)
			for to := 0; to < n; to++ {
				if (to-from+1+n)%n <= size {
					continue // the chain's own legs
				}
				if way(to, from)+way(from+size-1, to+1)-way(to, to+1) < saved-1e-9 {
					chain := slices.Clone(tour[from : from+size])
					after := to + 1
					if to > from {
						after -= size
					}
					copy(tour, slices.Insert(slices.Delete(slices.Clone(tour), from, from+size), after, chain...))
					return true
				}
			}
		}
	}
	return false
}
