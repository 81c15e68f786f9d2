package ui

// Serving is the addresses of the engine and its UI, and the worker.
type Serving struct {
	Address, UI, Namespace, Worker, Engine, Log string
	CLI                                         string // the Temporal CLI with its options, "" if it needs none
}

// Serving renders them.
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
