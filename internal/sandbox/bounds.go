package sandbox

// What can be outgrown.
const memoryBound, processBound = "memory", "processes"

// Reached counts how often something that ran was held to its limits.
type Reached struct {
	Killed  int64 // processes that the kernel ended, as memory was used up
	Refused int64 // processes that were not started, as there were as many as there may be
}

// Since is what came after an earlier count.
func (r Reached) Since(earlier Reached) Reached {
	return Reached{Killed: r.Killed - earlier.Killed, Refused: r.Refused - earlier.Refused}
}
