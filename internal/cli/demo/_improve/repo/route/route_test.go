package route_test

import (
	"math"
	"slices"
	"testing"

	"routes/route"
)

func TestPlanVisitsEveryCityExactlyOnce(t *testing.T) {
	all, err := route.Load("../data/cities.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 2, 3, 4, 5, 10, 30, len(all)} {
		tour := route.Plan(all[:n])
		if len(tour) != n {
			t.Errorf("%d cities: the tour has %d stops", n, len(tour))
			continue
		}
		sorted := slices.Clone(tour)
		slices.Sort(sorted)
		for i, city := range sorted {
			if city != i {
				t.Errorf("%d cities: %s is not visited exactly once", n, all[i].Name)
				break
			}
		}
	}
}

func TestLengthOfARoundTrip(t *testing.T) {
	square := []route.City{{"a", 0, 0}, {"b", 0, 1}, {"c", 1, 1}, {"d", 1, 0}}
	if got := route.Length(square, []int{0, 1, 2, 3}); math.Abs(got-444.76) > 0.1 {
		t.Errorf("the square is %.2f km around, want 444.76", got)
	}
}
