// Package route plans round trips.
package route

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// City is a place on the map, in degrees.
type City struct {
	Name     string
	Lat, Lon float64
}

// Load reads a file of lines "name,latitude,longitude".
func Load(path string) ([]City, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var cities []City
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ",")
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s: not a city: %q", path, lines.Text())
		}
		lat, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return nil, err
		}
		lon, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			return nil, err
		}
		cities = append(cities, City{fields[0], lat, lon})
	}
	return cities, lines.Err()
}

const earthRadius = 6371 // km

// Distance returns the great-circle distance of two cities in km.
func Distance(a, b City) float64 {
	const rad = math.Pi / 180
	dLat, dLon := (b.Lat-a.Lat)*rad/2, (b.Lon-a.Lon)*rad/2
	h := math.Sin(dLat)*math.Sin(dLat) +
		math.Cos(a.Lat*rad)*math.Cos(b.Lat*rad)*math.Sin(dLon)*math.Sin(dLon)
	return 2 * earthRadius * math.Asin(math.Sqrt(h))
}

// Length returns the length of the round trip in km.
func Length(cities []City, tour []int) float64 {
	sum := 0.0
	for i := range tour {
		sum += Distance(cities[tour[i]], cities[tour[(i+1)%len(tour)]])
	}
	return sum
}
