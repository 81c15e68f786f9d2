package sandbox

// The limits that Outgrows can try.
const memoryBound, processBound = "memory", "processes"

// Reached counts how often commands ran into their limits.
type Reached struct {
	Killed  int64 // processes that the kernel killed because memory was used up
	Refused int64 // processes that were not started because the limit was reached
}

// Since returns the counts since an earlier count.
func (r Reached) Since(earlier Reached) Reached {
	return Reached{Killed: r.Killed - earlier.Killed, Refused: r.Refused - earlier.Refused}
}
