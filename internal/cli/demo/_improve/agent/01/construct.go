package route

// construct returns a first tour: from each city on to the nearest one not yet visited.
func construct(cities []City) []int {
	return nearest(cities, 0)
}

func nearest(cities []City, start int) []int {
	if len(cities) == 0 {
		return nil
	}
	visited := make([]bool, len(cities))
	tour := []int{start}
	visited[start] = true
	for len(tour) < len(cities) {
		here, next := tour[len(tour)-1], -1
		for i := range cities {
			if !visited[i] && (next < 0 || Distance(cities[here], cities[i]) < Distance(cities[here], cities[next])) {
				next = i
			}
		}
		tour = append(tour, next)
		visited[next] = true
	}
	return tour
}
