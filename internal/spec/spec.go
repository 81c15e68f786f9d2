package spec

import (
	"time"

	"pawl/internal/evidence"
	"pawl/internal/lazyregexp"
)

// Spec is one loop as its spec file describes it, with every default filled in. Its JSON has
// the keys of the file and parses back to the same Spec; it is the workflow's input.
//
// A Spec that came from Parse or FromMap is valid. One that was decoded from JSON in any other
// way has neither defaults nor checks.
type Spec struct {
	Name        string              `json:"name,omitempty"`
	Kind        string              `json:"kind"`
	Goal        string              `json:"goal"`
	Repo        Repo                `json:"repo"`
	Setup       Setup               `json:"setup,omitzero"`
	Scope       []string            `json:"scope"`
	Protect     []string            `json:"protect,omitempty"`
	Judge       Judge               `json:"judge,omitzero"`
	Validation  Validation          `json:"validate,omitzero"`
	NewFiles    string              `json:"newFiles"`
	Verify      Verify              `json:"verify"`
	Metrics     []evidence.Bound    `json:"metrics,omitempty"`
	Guard       Guard               `json:"guard"`
	Policies    map[string]Policy   `json:"policies,omitempty"`
	Test        Test                `json:"test,omitzero"`
	Check       Check               `json:"check,omitzero"`
	Agent       Agent               `json:"agent"`
	Reviewer    Reviewer            `json:"reviewer,omitzero"`
	Sandbox     Sandbox             `json:"sandbox"`
	Permissions map[string][]string `json:"permissions,omitempty"`
	Limits      Limits              `json:"limits"`
	Approvals   Approvals           `json:"approvals"`
	Breakpoints []string            `json:"breakpoints,omitempty"`
	Mode        string              `json:"mode"`
	Notify      []string            `json:"notify,omitempty"`
	Session     map[string]string   `json:"session,omitempty"`
}

// Repo is where the work is.
type Repo struct {
	Path string `json:"path,omitempty"` // "." in a file; absolute in workflow input
	URL  string `json:"url,omitempty"`
	Base string `json:"base,omitempty"` // "" is the branch that is checked out
	Host string `json:"host,omitempty"`
}

// Setup is run once in each new tree, and again where a lockfile differs from what it ran with.
type Setup struct {
	Command string `json:"command,omitempty"`
}

// Judge says what survives between judgements.
type Judge struct {
	Keep []string `json:"keep,omitempty"`
}

// Validation says what is tried before a loop starts, beside its commands.
type Validation struct {
	Canary *bool `json:"canary,omitempty"`
}

// Canary says whether the code in scope is broken before the loop starts, for what guards it to notice.
func (s Spec) Canary() bool { return s.Validation.Canary == nil || *s.Validation.Canary }

// Verify is the command that prints the metric, and what to make of it.
type Verify struct {
	Command   string   `json:"command"`
	Timeout   Duration `json:"timeout"`
	Pattern   string   `json:"pattern,omitempty"`
	Direction string   `json:"direction"`
	// MinDelta is an amount, or a share of what the metric was before.
	MinDelta evidence.Threshold `json:"minDelta"`
	Target   *evidence.Decimal  `json:"target,omitempty"`

	Evidence     *string `json:"evidence,omitempty"` // Judging has the default, and so on
	Calibration  *int    `json:"calibration,omitempty"`
	MaxSamples   *int    `json:"maxSamples,omitempty"`
	ParallelSafe *bool   `json:"parallelSafe,omitempty"`
	Holdout      Holdout `json:"holdout,omitzero"`
}

// Guard is the command that must go on passing. An empty command is no guard.
type Guard struct {
	Command string   `json:"command,omitempty"`
	Timeout Duration `json:"timeout"`
	Policy  string   `json:"policy"`
	// FewerTests says that fewer tests may pass than on the unchanged code.
	FewerTests *bool `json:"fewerTests,omitempty"`
}

// FewerTests says whether fewer tests may pass than on the unchanged code, of those that the guard and test
// commands report.
func (s Spec) FewerTests() bool { return s.Guard.FewerTests != nil && *s.Guard.FewerTests }

// Test is the test command of deliver.
type Test struct {
	Command  string   `json:"command,omitempty"`
	Timeout  Duration `json:"timeout,omitzero"`
	Required *bool    `json:"required,omitempty"`
	// Report are doublestar globs of the JUnit XML files that guard and test command write.
	Report []string `json:"report,omitempty"`
}

// builders are the programs that write JUnit XML by themselves, into the same folders everywhere.
var builders = lazyregexp.New(`(?:^|[\s/;&|(])(?:mvnw?|gradlew?)(?:[\s;&|)]|$)`)

// surefire is where Maven and Gradle write their reports.
var surefire = []string{"**/target/surefire-reports/TEST-*.xml", "**/target/failsafe-reports/TEST-*.xml", "**/build/test-results/**/TEST-*.xml"}

// ReportsOf returns the globs of the reports that a command writes: those of the spec, else those of Maven and
// Gradle where it runs them.
func (s Spec) ReportsOf(command string) []string {
	if len(s.Test.Report) == 0 && builders.MatchString(command) {
		return surefire
	}
	return s.Test.Report
}

// TestRequired says whether a Deliver loop has to pass its tests (L2).
func (s Spec) TestRequired() bool { return s.Test.Required == nil || *s.Test.Required }

// Reviewer says who may review.
type Reviewer struct {
	// OtherVendor wants that the reviewer calls models of another vendor than those who have written.
	OtherVendor bool `json:"otherVendor,omitempty"`
}

// Check is the syntax check or lint after each edit.
type Check struct {
	Command string `json:"command,omitempty"`
}

// Sandbox is what keeps agent and commands from the rest of the machine (E6).
type Sandbox struct {
	Use     string   `json:"use"`               // auto: what the machine has; required: all of it
	Allow   []string `json:"allow,omitempty"`   // files and folders to write besides
	Network string   `json:"network,omitempty"` // filtered: out through the proxy alone; none; open: the machine's
	Hosts   []string `json:"hosts,omitempty"`   // what the proxy lets through, as ParseHost reads them
	Agents  []string `json:"agents,omitempty"`  // programs that a command starts, which get their sign-ins
}

// Limits are the budgets and bounds of a loop; a nil budget is unlimited.
type Limits struct {
	Iterations   int               `json:"iterations"`
	ActiveTime   Duration          `json:"activeTime"`
	ToolCalls    int               `json:"toolCalls"`
	CostUSD      *evidence.Decimal `json:"costUSD,omitempty"`
	Tokens       *int64            `json:"tokens,omitempty"`
	WallClock    *Duration         `json:"wallClock,omitempty"`
	FixAttempts  int               `json:"fixAttempts"` // of deliver, per iteration
	Reworks      int               `json:"reworks"`
	Discards     int               `json:"discards"`
	ShiftAfter   int               `json:"shiftAfter"`
	Steps        int               `json:"steps"` // agent calls per iteration
	PhaseTimeout Duration          `json:"phaseTimeout"`
	Silence      *Duration         `json:"silence,omitempty"` // of an agent none of whose tools is at work; Spec.Silence has the default
	OnExhausted  string            `json:"onExhausted"`
	Parallel     *int              `json:"parallel,omitempty"`  // of improve: candidates at once; Spec.AtOnce has the default
	Backtrack    *bool             `json:"backtrack,omitempty"` // of improve; Spec.Backtracks has the default
	Atomic       *string           `json:"atomic,omitempty"`    // note or rework; Spec.Atomic has the default
	OnSealed     *string           `json:"onSealed,omitempty"`  // of improve: rework, the default, or block
	// Memory and Processes are what all that runs in the sandbox may use at a time; nil is no limit of memory and
	// DefaultProcesses.
	Memory    *Size `json:"memory,omitempty"`
	Processes *int  `json:"processes,omitempty"`
	// DeskBytes is what a tree and the caches of the sandbox may take on the disk while a command runs; nil is no limit.
	DeskBytes *Size `json:"deskBytes,omitempty"`
}

// Silence is how long an agent may say nothing while none of its tools is at work, as far as its stream tells.
func (s Spec) Silence() time.Duration {
	if s.Limits.Silence == nil {
		return 5 * time.Minute
	}
	return s.Limits.Silence.D()
}

// Atomic says what becomes of a change that is several at once (P2): Note, or Rework for a command that is
// held to the source's protocol.
func (s Spec) Atomic() string {
	switch {
	case s.Limits.Atomic != nil:
		return *s.Limits.Atomic
	case s.Agent.For(RoleWriter).Use == UseCommand:
		return Rework
	}
	return Note
}

// OnSealed says what becomes of a change by an Improve loop that touches a sealed file (P3): Rework, or Block.
func (s Spec) OnSealed() string {
	if s.Limits.OnSealed == nil {
		return Rework
	}
	return *s.Limits.OnSealed
}

// Approvals says what a person has to approve, and which tools are approved (A1).
type Approvals struct {
	Plan          string   `json:"plan"`
	Diff          string   `json:"diff"`
	Tools         []string `json:"tools"`
	EscalateAfter Duration `json:"escalateAfter"`
	OnDenied      *string  `json:"onDenied,omitempty"` // deny, the default, or ask
}

// AsksOfTools reports whether a person is asked when an agent was not allowed to use a tool (`approvals.onDenied: ask`).
func (s Spec) AsksOfTools() bool { return s.Approvals.OnDenied != nil && *s.Approvals.OnDenied == Ask }

// The words that the spec's values are made of.
const (
	Deny  = "deny"
	Ask   = "ask"
	Allow = "allow"

	Required = "required"
	Auto     = "auto"
	Off      = "off"
	Filtered = "filtered"
	None     = "none"
	Open     = "open"

	Halt = "halt"

	Note   = "note"
	Rework = "rework"
	Block  = "block"

	ModeAnswer  = "answer"
	ModePlan    = "plan"
	ModeMission = "mission"

	PolicyDefault = "default"
)
