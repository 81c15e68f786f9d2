package route

// Plan returns the order in which to visit the cities; the trip ends where it began.
func Plan(cities []City) []int {
	return improve(cities, construct(cities))
}
