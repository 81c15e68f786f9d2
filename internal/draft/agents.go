package draft

import (
	"slices"

	"pawl/internal/program"
)

// Agents lists the programs that init looks for, in this order: the values of agent.use whose sign-in pawl can find.
var Agents = slices.DeleteFunc(slices.Clone(program.Table), func(p program.Program) bool { return !p.Use || !p.Signs() })
