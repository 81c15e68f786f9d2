package repo

// For tests of what no exported function shows by itself.
var (
	CheckRef = checkRef
	Escapes  = escapes
)

// Invariants are the configuration of every git process.
func Invariants() []string { return invariants }
