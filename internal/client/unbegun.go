package client

import (
	"fmt"
	"slices"

	"pawl/internal/client/launch"
	"pawl/internal/fault"
	"pawl/internal/home/hostrecord"
	"pawl/internal/loop"
)

// NoteStarted notes a loop or a steward on this host that only the engine knows: no worker has taken it yet. So it can be
// listed and ended while no engine runs. The worker that opens it removes the note.
func (c *Client) NoteStarted(id, run, kind, repo string) error {
	return hostrecord.Announce(c.Home, hostrecord.Record{
		Loop: id, Kind: kind, FirstRun: run, Namespace: c.Namespace, Repo: repo, OpenedAt: c.Now(),
	})
}

// unbegun returns what this host has noted of loops and stewards that no worker has opened: it has no other record of
// them.
func (c *Client) unbegun(records []hostrecord.Record) ([]hostrecord.Record, error) {
	announced, err := hostrecord.Announced(c.Home)
	return slices.DeleteFunc(announced, func(r hostrecord.Record) bool {
		return r.Loop == "" || slices.ContainsFunc(records, func(record hostrecord.Record) bool { return record.FirstRun == r.FirstRun })
	}), err
}

// lastNote returns the last note about a loop or a steward that no worker has opened.
func (c *Client) lastNote(id string) (last hostrecord.Record, ok bool) {
	records, err := hostrecord.List(c.Home)
	if err != nil {
		return hostrecord.Record{}, false
	}
	notes, _ := c.unbegun(records) // a note that can't be read says nothing
	for _, r := range notes {
		if r.Loop == id && !r.OpenedAt.Before(last.OpenedAt) {
			last, ok = r, true
		}
	}
	return last, ok
}

// unbegunRow returns the row of a note.
func unbegunRow(r hostrecord.Record) launch.Row {
	row := launch.Row{Loop: r.Loop, Run: r.FirstRun, Kind: r.Kind, Repo: r.Repo, Status: opening, Source: "ledger"}
	since(&row, r.OpenedAt)
	if r.Closed {
		row.Status, row.EndedAt = string(loop.Halted), utc(r.ClosedAt)
	}
	return row
}

// ForgetUnbegun removes the notes about loops of an ID that ended before any worker took them.
func (c *Client) ForgetUnbegun(id string) {
	notes, _ := hostrecord.Announced(c.Home) // a note that can't be read stays
	for _, r := range notes {
		if r.Loop == id && r.Closed {
			hostrecord.Retract(c.Home, r)
		}
	}
}

// notBegun is the fault for a message to a loop or steward that no worker has taken.
func (c *Client) notBegun(f Family, id string) *fault.Error {
	return fault.New(fault.NoWorker, "the %s %s has not begun: no worker has taken it yet", f.Word, id).
		Advise(fmt.Sprintf("%s starts one. To end the %s instead: `%s %s`.", c.AWorker(), f.Word, f.end, id))
}
