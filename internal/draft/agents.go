package draft

import "pawl/internal/program"

// Agents are the programs that are looked for, in this order.
var Agents = func() (all []program.Program) {
	for _, p := range program.Table {
		if p.Use && p.Signs() {
			all = append(all, p)
		}
	}
	return all
}()
