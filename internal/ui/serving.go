package ui

// Serving is where the engine, its UI and the worker are.
type Serving struct {
	Address, UI, Namespace, Worker, Engine, Log string
	CLI                                         string // the Temporal CLI with what it needs, "" where that is nothing
}

// Serving renders it.
func (s Style) Serving(v Serving) string {
	f := s.fields(11)
	whose := ""
	switch v.Engine {
	case "ours":
		whose = " (embedded, in this process)"
	case "another's":
		whose = " (embedded, in another pawl)"
	}
	f.add("Temporal", v.Address+whose+", namespace "+v.Namespace)
	f.add("Temporal UI", v.UI)
	if v.CLI != "" {
		f.add("CLI", v.CLI+" …")
	}
	f.add("worker", v.Worker)
	f.add("log", v.Log)
	return f.String()
}
