package draft

import "pawl/internal/program"

// Agents lists the programs that init looks for, in this order: the values of agent.use whose sign-in pawl can find.
var Agents = func() (all []program.Program) {
	for _, p := range program.Table {
		if p.Use && p.Signs() {
			all = append(all, p)
		}
	}
	return all
}()
