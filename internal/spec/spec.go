package spec

import (
	"time"

	"pawl/internal/lib/lazyregexp"
	"pawl/internal/metric"
	"pawl/internal/spec/kind"
)

// Spec is one loop as its spec file describes it, with all defaults. Its JSON has the keys of the file, and parsing
// it returns the same Spec. It is the input of the workflow.
//
// A Spec from Parse or FromMap is valid. A Spec that was decoded from JSON in another way has no defaults and was not
// checked.
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
	Metrics     []metric.Bound      `json:"metrics,omitempty"`
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

// Repo is the repository of the work.
type Repo struct {
	Path string `json:"path,omitempty"` // "." in a file; absolute in workflow input
	URL  string `json:"url,omitempty"`
	Base string `json:"base,omitempty"` // "" is the checked-out branch
	Host string `json:"host,omitempty"`
}

// Setup runs once in each new tree, and again if a lockfile has changed since.
type Setup struct {
	Command string `json:"command,omitempty"`
}

// Judge says which files stay in the judge's tree between judgements.
type Judge struct {
	Keep []string `json:"keep,omitempty"`
}

// Validation says what else is tried before a loop starts, besides its commands.
type Validation struct {
	Canary *bool `json:"canary,omitempty"`
}

// Canary reports whether pawl breaks the code in scope before the loop starts, to see whether the guard notices.
func (s Spec) Canary() bool { return or(s.Validation.Canary, true) }

// or returns the value that is given, else the default.
func or[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}

// Verify is the command that prints the metric, and how to read and judge it.
type Verify struct {
	Command   string   `json:"command"`
	Timeout   Duration `json:"timeout"`
	Pattern   string   `json:"pattern,omitempty"`
	Direction string   `json:"direction"`
	// MinDelta is an amount, or a share of the reference.
	MinDelta metric.Threshold `json:"minDelta"`
	Target   *metric.Decimal  `json:"target,omitempty"`

	Evidence     *string `json:"evidence,omitempty"` // for the defaults of these see Judging, OnSuspicious, Calibrations, MostSamples and Shares
	Suspicious   *string `json:"suspicious,omitempty"`
	Calibration  *int    `json:"calibration,omitempty"`
	MaxSamples   *int    `json:"maxSamples,omitempty"`
	ParallelSafe *bool   `json:"parallelSafe,omitempty"`
	Holdout      Holdout `json:"holdout,omitzero"`
}

// Guard is the command that must keep passing. An empty command means that there is no guard.
type Guard struct {
	Command string   `json:"command,omitempty"`
	Timeout Duration `json:"timeout"`
	Policy  string   `json:"policy"`
	// FewerTests allows that fewer tests pass than on the unchanged code.
	FewerTests *bool `json:"fewerTests,omitempty"`
	// Retries is how often a guard that failed is run again on the same tree.
	Retries *int `json:"retries,omitempty"`
	// Report has doublestar globs of the report files that the guard writes, in a format that test runners write.
	Report []string `json:"report,omitempty"`
}

// GuardRetries returns guard.retries.
func (s Spec) GuardRetries() int { return or(s.Guard.Retries, 1) }

// FewerTests reports whether fewer tests may pass than on the unchanged code. It concerns the tests that guard and
// test commands report.
func (s Spec) FewerTests() bool { return or(s.Guard.FewerTests, false) }

// Test is the test command of deliver.
type Test struct {
	Command  string   `json:"command,omitempty"`
	Timeout  Duration `json:"timeout,omitzero"`
	Required *bool    `json:"required,omitempty"`
	// Report has doublestar globs of the report files that the test command writes, and the guard without guard.report.
	Report []string `json:"report,omitempty"`
}

// builders matches commands of Maven and Gradle. They always write JUnit XML, into the same folders everywhere.
var builders = lazyregexp.New(`(?:^|[\s/;&|(])(?:mvnw?|gradlew?)(?:[\s;&|)]|$)`)

// surefire has globs of the reports of Maven and Gradle.
var surefire = []string{"**/target/surefire-reports/TEST-*.xml", "**/target/failsafe-reports/TEST-*.xml", "**/build/test-results/**/TEST-*.xml"}

// GuardReports returns the globs of the reports that the guard writes: guard.report, else what TestReports returns for
// its command.
func (s Spec) GuardReports() []string {
	if len(s.Guard.Report) > 0 {
		return s.Guard.Report
	}
	return s.reportsOf(s.Guard.Command)
}

// TestReports returns the globs of the reports that the test command writes: test.report, else those of Maven and
// Gradle if the command runs one of them.
func (s Spec) TestReports() []string { return s.reportsOf(s.Test.Command) }

func (s Spec) reportsOf(command string) []string {
	if len(s.Test.Report) == 0 && builders().MatchString(command) {
		return surefire
	}
	return s.Test.Report
}

// TestRequired reports whether a Deliver loop has to pass its tests (L2).
func (s Spec) TestRequired() bool { return or(s.Test.Required, true) }

// Reviewer says who may review.
type Reviewer struct {
	// OtherVendor requires that the models of the reviewer come from another vendor than those of the writers.
	OtherVendor bool `json:"otherVendor,omitempty"`
}

// Check is the syntax check or lint after each edit.
type Check struct {
	Command string `json:"command,omitempty"`
}

// Sandbox keeps agent and commands away from the rest of the machine (E6).
type Sandbox struct {
	Use     string   `json:"use"`               // auto: as far as the machine supports it; required: completely
	Allow   []string `json:"allow,omitempty"`   // more files and folders that may be written
	Network string   `json:"network,omitempty"` // filtered: only through the proxy; none; open: the network of the machine
	Hosts   []string `json:"hosts,omitempty"`   // the hosts that the proxy lets through, as ParseHost reads them
	Agents  []string `json:"agents,omitempty"`  // the agents that a command starts; they get their sign-ins
}

// Limits are the budgets and limits of a loop. A budget that is nil is unlimited.
type Limits struct {
	Iterations   int             `json:"iterations"`
	ActiveTime   Duration        `json:"activeTime"`
	ToolCalls    int             `json:"toolCalls"`
	CostUSD      *metric.Decimal `json:"costUSD,omitempty"`
	Tokens       *int64          `json:"tokens,omitempty"`
	WallClock    *Duration       `json:"wallClock,omitempty"`
	FixAttempts  int             `json:"fixAttempts"` // for deliver, per iteration
	Reworks      int             `json:"reworks"`
	Discards     int             `json:"discards"`
	ShiftAfter   int             `json:"shiftAfter"`
	Steps        int             `json:"steps"` // agent calls per iteration
	PhaseTimeout Duration        `json:"phaseTimeout"`
	Silence      *Duration       `json:"silence,omitempty"` // how long an agent may say nothing while no tool of it runs; Spec.Silence says the default
	OnExhausted  string          `json:"onExhausted"`
	Parallel     *int            `json:"parallel,omitempty"`  // for improve: how many candidates are made at the same time; Spec.AtOnce says the default
	Backtrack    *bool           `json:"backtrack,omitempty"` // for improve; Spec.Backtracks says the default
	Atomic       *string         `json:"atomic,omitempty"`    // note or rework; Spec.Atomic says the default
	OnSealed     *string         `json:"onSealed,omitempty"`  // for improve: rework, the default, or block
	// Memory and Processes limit all programs in the sandbox together. Without Memory there is no limit of memory;
	// without Processes it is DefaultProcesses.
	Memory    *Size `json:"memory,omitempty"`
	Processes *int  `json:"processes,omitempty"`
	// DeskBytes limits the size on disk of a tree and the sandbox's caches while a command runs; nil is no limit.
	DeskBytes *Size `json:"deskBytes,omitempty"`
}

// Silence returns how long an agent may say nothing while no tool of it runs, as far as its stream shows that, 0 for no
// limit. A command may say nothing while it works: it has a limit only if the spec names one.
func (s Spec) Silence(use string) time.Duration {
	if use == UseCommand {
		return or(s.Limits.Silence, 0).D()
	}
	return or(s.Limits.Silence, Duration(5*time.Minute)).D()
}

// Atomic returns what happens to a change that is several changes at once (P2): Note, or Rework for a command, which
// has to follow the protocol of the source.
func (s Spec) Atomic() string {
	usual := Note
	if s.Agent.For(RoleWriter).Use == UseCommand {
		usual = Rework
	}
	return or(s.Limits.Atomic, usual)
}

// OnSealed returns what happens to a change of an Improve loop that touches a sealed file (P3): Rework, or Block.
func (s Spec) OnSealed() string { return or(s.Limits.OnSealed, Rework) }

// Approvals says what a person has to approve, and which tools are approved (A1).
type Approvals struct {
	Plan          string   `json:"plan"`
	Diff          string   `json:"diff"`
	Tools         []string `json:"tools"`
	EscalateAfter Duration `json:"escalateAfter"`
	OnDenied      *string  `json:"onDenied,omitempty"` // deny, the default, or ask
}

// AsksOfTools reports whether a person is asked when an agent was not allowed to use a tool (`approvals.onDenied: ask`).
func (s Spec) AsksOfTools() bool { return or(s.Approvals.OnDenied, Deny) == Ask }

// The keys that a steward sets in the session of a loop that it starts. A session contains what the starter of a loop
// says; pawl shows it, but does not check it.
const (
	SessionSteward    = "steward"    // the steward's workflow ID; the loop reports its state to it
	SessionTask       = "task"       // the task that the loop is a step of
	SessionPlan       = "plan"       // the SHA-256 of the task's PLAN.md
	SessionApprovedBy = "approvedBy" // who approved that plan
	SessionBase       = "base"       // the commit at which the task began: its proposal covers all steps since
	SessionOnto       = "onto"       // the branch that the task's work is applied to
)

// The words that are values in a spec.
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

// DefaultProcesses is the maximum number of processes and threads that a loop has at the same time, if its spec does
// not set it and the machine has cgroups. It is far more than builds need, and far less than a machine can have.
const DefaultProcesses = 4096

// Defaults returns the defaults of the contract, with the budgets of the profile a1 (A2). Required keys are empty.
func Defaults() Spec {
	return Spec{
		Kind:     kind.Improve.Name,
		Repo:     Repo{Path: "."},
		NewFiles: Deny,
		Verify:   Verify{Timeout: Duration(30 * time.Second), Direction: "higher"},
		Guard:    Guard{Timeout: Duration(5 * time.Minute), Policy: PolicyDefault},
		Test:     Test{Timeout: Duration(5 * time.Minute)},
		Agent:    Agent{Use: UseCommand},
		Sandbox:  Sandbox{Use: Auto, Network: Filtered},
		Limits: Limits{
			Iterations:   3,
			ActiveTime:   Duration(10 * time.Minute),
			ToolCalls:    10,
			FixAttempts:  3,
			Reworks:      2,
			Discards:     10,
			ShiftAfter:   5,
			Steps:        10,
			PhaseTimeout: Duration(10 * time.Minute),
			OnExhausted:  Halt,
		},
		Approvals: Approvals{Plan: Required, Diff: Required, EscalateAfter: Duration(24 * time.Hour)},
		Mode:      ModeMission,
	}
}
