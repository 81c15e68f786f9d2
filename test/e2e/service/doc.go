// Package service runs loops as people with a Temporal cluster do: with the Temporal CLI, a browser, and the programs
// in worker/ and starter/.
package service
