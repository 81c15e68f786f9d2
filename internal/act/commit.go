package act

import (
	"fmt"
	"time"
)

// Commit commits what the desk differs from Head by. A change that violates a policy is not
// committed; the violations come back instead.
type Commit struct {
	Ref         string    `json:"ref"`
	Ledger      string    `json:"ledger"` // where the contract is
	Head        string    `json:"head"`
	Iteration   int       `json:"iteration"`
	Attempt     int       `json:"attempt"`
	Description string    `json:"description"`
	Time        time.Time `json:"time"`
	// AllowNew is the hash of a change whose new files a person has approved (newFiles: ask). It
	// holds for exactly that change.
	AllowNew string `json:"allowNew,omitempty"`
	// OneChange asks that a change that is several at once is not committed (P2).
	OneChange bool `json:"oneChange,omitempty"`
	// Desk is the desk that has the change: 0 is the loop's own, any other one that of a candidate.
	Desk int `json:"desk,omitempty"`
	// Leftovers are what the spec's own commands leave in a tree: they count to no change.
	Leftovers []string `json:"leftovers,omitempty"`
	// Aside makes a commit that no branch has: a candidate, which the ledger keeps.
	Aside bool `json:"aside,omitempty"`
}

// Concerns is the commit of its iteration.
func (c Commit) Concerns() (iteration int, what, name string) { return c.Iteration, "phase", "commit" }

// Workspace is the name of the loop on its host.
func (c Commit) Workspace() string { return c.Ref }

// Committed is the commit, or why there is none.
type Committed struct {
	Commit     string      `json:"commit,omitempty"`
	Tree       string      `json:"tree,omitempty"`
	NoChange   bool        `json:"noChange,omitempty"`
	Files      []string    `json:"files,omitempty"` // git-quoted, capped
	Area       string      `json:"area,omitempty"`
	Violations []Violation `json:"violations,omitempty"` // capped
	// TotalFiles is how many files the loop has touched, where that was counted anew.
	TotalFiles int `json:"totalFiles,omitempty"`
	// NewFiles need approval first; NewFilesHash, the SHA-256 of the whole change as a diff, is
	// what is approved. There is no commit then.
	NewFiles     []string `json:"newFiles,omitempty"`    // git-quoted, capped
	NewFilesAll  int      `json:"newFilesAll,omitempty"` // how many there are
	NewFilesHash string   `json:"newFilesHash,omitempty"`
	// Several is why the change is several at once and was not committed; Note is why it may be, or that it is large.
	Several string `json:"several,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Take brings what a candidate has changed onto the loop's desk, on top of Head: as it was made where that is
// its base, else put together with what has been kept since.
type Take struct {
	Ref       string    `json:"ref"`
	Iteration int       `json:"iteration"`
	Head      string    `json:"head"`
	Base      string    `json:"base"`   // what the candidate was made from, or Head where that has the same tree
	Commit    string    `json:"commit"` // the candidate
	Time      time.Time `json:"time"`
}

// Concerns is the change of its iteration.
func (t Take) Concerns() (iteration int, what, name string) { return t.Iteration, "phase", "modify" }

// Workspace is the name of the loop on its host.
func (t Take) Workspace() string { return t.Ref }

// Taken is what came of it. Conflict says which files both have changed, "" where they go together.
type Taken struct {
	Conflict string `json:"conflict,omitempty"`
}

// Violation is a broken rule: which, of which policy, where.
type Violation struct {
	Policy string `json:"policy,omitempty"`
	Rule   string `json:"rule"`
	Path   string `json:"path"`           // git-quoted, "" for the change as a whole
	Line   int    `json:"line,omitempty"` // 0 where the rule has none
	Detail string `json:"detail,omitempty"`
	Blocks bool   `json:"blocks,omitempty"` // more than a discard: the loop stops for a person
}

// Where is the place of a violation for people: "src/a.go:12", "the change".
func (v Violation) Where() string {
	switch {
	case v.Path == "":
		return "the change"
	case v.Line > 0:
		return fmt.Sprintf("%s:%d", v.Path, v.Line)
	}
	return v.Path
}

// String is the violation in a line: "secrets: src/a.go:12, it looks like a GitHub token".
func (v Violation) String() string { return fmt.Sprintf("%s: %s, %s", v.Rule, v.Where(), v.Detail) }
