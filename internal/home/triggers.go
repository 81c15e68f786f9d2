package home

import (
	"net"
	"path/filepath"

	"pawl/internal/durable"
)

// TriggersPort is where the endpoint of the triggers listens unless something else does.
const TriggersPort = 8280

// endpoint is the file that says where the triggers are served, in the form of engine.json.
type endpoint struct {
	Address string `json:"address"`
	Ports   []int  `json:"ports"`
}

func (h Home) triggers() string { return filepath.Join(h.Dir, "triggers.json") }

// ServeTriggersAt keeps the address of the triggers: senders know it, so the next worker listens there
// again, and sandboxed commands are kept from it.
func (h Home) ServeTriggersAt(at *net.TCPAddr) error {
	return durable.WriteJSON(h.triggers(), endpoint{at.String(), []int{at.Port}})
}

// TriggerPorts is where the triggers are served, were served last, or will be.
func (h Home) TriggerPorts() []int {
	var e endpoint
	if durable.ReadJSON(h.triggers(), &e) != nil || len(e.Ports) == 0 {
		return []int{TriggersPort}
	}
	return e.Ports
}
