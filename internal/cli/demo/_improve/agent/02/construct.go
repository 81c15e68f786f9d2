package route

import "sort"

// construct returns a first tour: from west to east.
func construct(cities []City) []int {
	tour := make([]int, len(cities))
	for i := range tour {
		tour[i] = i
	}
	sort.Slice(tour, func(i, j int) bool { return cities[tour[i]].Lon < cities[tour[j]].Lon })
	return tour
}
