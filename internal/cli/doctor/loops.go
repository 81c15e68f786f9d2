package doctor

import (
	"strings"

	"pawl/internal/home/hostrecord"
	"pawl/internal/home/repairlog"
)

// mended lists what was damaged and repaired on this host, which nobody would notice otherwise.
func (e *examination) mended() {
	if e.o.HomeErr != nil {
		return
	}
	const fix = "What is mended needs nothing from you; if the loop has failed, `pawl show ID` says what to do. If it happens again, check the disk. `pawl clean` removes these records of ended loops."
	say := func(name, dir string) {
		if lines := repairlog.Lines(dir); len(lines) > 0 {
			e.note(name, fix, "%s", strings.Join(lines, "; "))
		}
	}
	say("mended engine", e.o.Home.Engine())
	records, err := hostrecord.List(e.o.Home)
	if err != nil {
		return // loops reports this error
	}
	for _, r := range records {
		say("mended "+r.Ref, e.o.Home.Loop(r.Ref))
	}
}

// loops lists the loops of this host that can't continue, and those that have ended and can't be read any more.
func (e *examination) loops() {
	if e.o.Troubles == nil || e.o.HomeErr != nil {
		return
	}
	found, err := e.o.Troubles(e.ctx)
	if err != nil {
		e.note("loops", "Check the folder "+e.o.Home.Dir+".", "they can't be listed: %s", firstLine(err))
		return
	}
	for _, t := range found {
		text, _, _ := strings.Cut(t.What, "\n")
		if t.Ended {
			e.note("loop "+t.Loop, "Start a worker (`pawl up`), or restart yours. If the repository lacks the ledger too, `pawl clean "+t.Loop+"` removes what is left on this host.", "has ended; %s", text)
			continue
		}
		e.failed("loop "+t.Loop, "The worker repairs what it can and tries again (`pawl up` starts one). The log says what it did. `pawl show "+t.Loop+"` says where the loop stands.", "%s", text)
	}
	if len(found) == 0 {
		e.ok("loops", "no loop of this host is held up by damage or by failures that repeat")
	}
}
