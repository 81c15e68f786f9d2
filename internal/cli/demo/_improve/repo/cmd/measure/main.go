// Measure plans the tour through data/cities.csv and prints its length in kilometres.
package main

import (
	"fmt"
	"os"

	"routes/route"
)

func main() {
	cities, err := route.Load("data/cities.csv")
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
	fmt.Printf("METRIC tour=%.1f\n", route.Length(cities, route.Plan(cities)))
}
