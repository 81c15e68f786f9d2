package route

// improve makes a tour shorter. For now it leaves it as it is.
func improve(cities []City, tour []int) []int {
	return tour
}
