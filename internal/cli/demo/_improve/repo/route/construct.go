package route

import (
	"math"
	"sort"
)

// construct returns a first tour: band by band from south to north, every other band from east
// to west.
func construct(cities []City) []int {
	const height = 5.0 // degrees
	tour := make([]int, len(cities))
	for i := range tour {
		tour[i] = i
	}
	sort.Slice(tour, func(i, j int) bool {
		a, b := cities[tour[i]], cities[tour[j]]
		band := math.Floor(a.Lat / height)
		if other := math.Floor(b.Lat / height); band != other {
			return band < other
		}
		if int(band)%2 == 0 {
			return a.Lon < b.Lon
		}
		return a.Lon > b.Lon
	})
	return tour
}
