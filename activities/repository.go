package activities

import (
	"fmt"

	"pawl/internal/git"
	"pawl/internal/userrepo"
)

// local is where the repository is on this host, "" where it is elsewhere.
func (ws *loopWorkspace) local() string { return ws.Local() }

// inPlace returns a *userrepo.Precondition if another repository stands where the loop's was when it began.
// Nothing that is in such a one is read or run.
func (ws *loopWorkspace) inPlace() error {
	if is, err := ws.InPlace(); err != nil || is {
		return err
	}
	return &userrepo.Precondition{Code: userrepo.Replaced, What: fmt.Sprintf("%s is another repository than the one that the loop began with", git.Quote(ws.local())),
		Do: "bring that back; where you have put another one there, start the loop again from its ledger (pawl start --ledger)"}
}
