// Package temporal drives loops as people with a Temporal cluster do: by the Temporal CLI, a browser, and the programs in
// worker/ and starter/.
package temporal
