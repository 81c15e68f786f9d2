// Package e2e is the room for tests of the built programs from outside.
//
// Sub-rooms, by what they prove: start (what is refused before a loop runs), cli (what people tell a loop), ends (how
// iterations and loops end), proposal (review, apply, record), steward, service (a Temporal cluster, with worker/ and
// starter/), repository (unusual, remote and vanishing repositories), failures (processes that die, disks that fill
// up), crash (pawl is killed at every side effect).
//
// Tests start at test/harness/world.
package e2e
