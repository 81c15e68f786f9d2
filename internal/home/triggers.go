package home

import (
	"net"
	"path/filepath"

	"pawl/internal/lib/fsutil/durable"
)

// TriggersPort is the port of the triggers' endpoint, unless another one is set.
const TriggersPort = 8280

// endpoint is the content of the file that says where the triggers are served. It has the form of engine.json.
type endpoint struct {
	Address string `json:"address"`
	Ports   []int  `json:"ports"`
}

func (h Home) triggers() string { return filepath.Join(h.Dir, "triggers.json") }

// ServeTriggersAt records the address of the triggers. Senders know that address, so the next worker listens there
// again. Sandboxed commands can't reach it.
func (h Home) ServeTriggersAt(at *net.TCPAddr) error {
	return durable.WriteJSON(h.triggers(), endpoint{at.String(), []int{at.Port}})
}

// TriggerPorts returns the ports on which the triggers are served, were last served, or will be served.
func (h Home) TriggerPorts() []int {
	var e endpoint
	if durable.ReadJSON(h.triggers(), &e) != nil || len(e.Ports) == 0 {
		return []int{TriggersPort}
	}
	return e.Ports
}
