package api

import (
	"fmt"
	"time"
)

// Commit commits the difference between desk and Head, unless it violates a policy; the result has the violations.
type Commit struct {
	Ref         string    `json:"ref"`
	Ledger      string    `json:"ledger"` // the entry with the contract
	Head        string    `json:"head"`
	Iteration   int       `json:"iteration"`
	Attempt     int       `json:"attempt"`
	Description string    `json:"description"`
	Time        time.Time `json:"time"`
	// AllowNew is the hash of the one change whose new files a person has approved (newFiles: ask).
	AllowNew string `json:"allowNew,omitempty"`
	// OneChange refuses to commit several changes at once (P2).
	OneChange bool `json:"oneChange,omitempty"`
	// Desk is the desk with the change: 0 is the loop's own, any other one that of a candidate.
	Desk int `json:"desk,omitempty"`
	// Leftovers are files that the spec's own commands leave in a tree. They are not part of any change.
	Leftovers []string `json:"leftovers,omitempty"`
	// Aside makes a commit that is on no branch: a candidate, which the ledger keeps.
	Aside bool `json:"aside,omitempty"`
}

// Concerns returns the commit of its iteration.
func (c Commit) Concerns() (iteration int, subject, name string) {
	return c.Iteration, "phase", "commit"
}

// Workspace returns the name of the loop on its host.
func (c Commit) Workspace() string { return c.Ref }

// Needs returns the parent of the commit, and the entry with the contract.
func (c Commit) Needs() []string { return []string{c.Head, c.Ledger} }

// Committed is the commit, or the reason why there is none.
type Committed struct {
	Commit     string      `json:"commit,omitempty"`
	Tree       string      `json:"tree,omitempty"`
	NoChange   bool        `json:"noChange,omitempty"`
	Files      []string    `json:"files,omitempty"` // git-quoted, capped
	Area       string      `json:"area,omitempty"`
	Violations []Violation `json:"violations,omitempty"` // capped
	// TotalFiles is how many files the loop has touched, 0 if they were not counted again.
	TotalFiles int `json:"totalFiles,omitempty"`
	// NewFiles need approval first, and there is no commit. The approval is for NewFilesHash, the SHA-256 of the
	// whole change as a diff, after the gate's preface.
	NewFiles     []string `json:"newFiles,omitempty"`    // git-quoted, capped; those that a command could run first
	NewRunnable  int      `json:"newRunnable,omitempty"` // how many of all a command could run
	NewFilesAll  int      `json:"newFilesAll,omitempty"` // how many there are
	NewFilesHash string   `json:"newFilesHash,omitempty"`
	NewFilesOn   string   `json:"newFilesOn,omitempty"` // the head that the change is on (loop.Gate.On)
	// Several says why the change is several at once, and not committed; Note, why it may be, or that it is large.
	Several string `json:"several,omitempty"`
	Note    string `json:"note,omitempty"`
	// LeftOut is what was changed in submodules: no commit of this repository contains it.
	LeftOut    []string `json:"leftOut,omitempty"`    // git-quoted, capped
	LeftOutAll int      `json:"leftOutAll,omitempty"` // how many there are
}

// Take brings a candidate's change onto the loop's desk, on top of Head. It is taken unchanged if Head is the
// candidate's base, else it is merged with what was kept since.
type Take struct {
	Ref       string    `json:"ref"`
	Iteration int       `json:"iteration"`
	Head      string    `json:"head"`
	Base      string    `json:"base"`   // the commit that the candidate was made from; Head if its tree is the same
	Commit    string    `json:"commit"` // the candidate
	Time      time.Time `json:"time"`
}

// Concerns returns the change of its iteration.
func (t Take) Concerns() (iteration int, subject, name string) { return t.Iteration, "phase", "modify" }

// Workspace returns the name of the loop on its host.
func (t Take) Workspace() string { return t.Ref }

// Needs returns the commits that are brought together.
func (t Take) Needs() []string { return []string{t.Head, t.Base, t.Commit} }

// Taken is the result. Conflict names the files that both have changed, "" if the two can be merged.
type Taken struct {
	Conflict string `json:"conflict,omitempty"`
}

// Violation is a violated rule: which rule of which policy, and where.
type Violation struct {
	Policy string `json:"policy,omitempty"`
	Rule   string `json:"rule"`
	Path   string `json:"path"`           // git-quoted, "" for the change as a whole
	Line   int    `json:"line,omitempty"` // 0 if the rule has none
	Detail string `json:"detail,omitempty"`
	Blocks bool   `json:"blocks,omitempty"` // the loop also stops for a person, beyond the discard
}

// Where returns the location of a violation for people: "src/a.go:12", "the change".
func (v Violation) Where() string {
	switch {
	case v.Path == "":
		return "the change"
	case v.Line > 0:
		return fmt.Sprintf("%s:%d", v.Path, v.Line)
	}
	return v.Path
}

// String returns the violation in one line: "secrets: src/a.go:12, it looks like a GitHub token".
func (v Violation) String() string { return fmt.Sprintf("%s: %s, %s", v.Rule, v.Where(), v.Detail) }
