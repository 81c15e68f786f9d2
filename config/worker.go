package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Worker has the settings of this host's worker. What nobody should choose (heartbeats, the deadlock detector, the
// sticky queue's patience) is in internal/worker.
type Worker struct {
	// Agents is how many agents run at once; further ones wait, at no cost to their loop's budget. They have their
	// own slots on their own task queue, so a host full of agents still answers at once if a loop only wants to
	// commit a verdict. Each agent is a process of perhaps a gigabyte, and all of them share somebody's rate limit.
	//
	// 0 is the default: DefaultAgents with a Temporal service of your own. On the embedded engine it means no limit
	// except Activities, because one queue for everything saves a quarter of a step there (decision 4).
	Agents int
	// Activities is how many other activities run at once: tests, measurements, git. It is more than the number of
	// processors, because most activities wait for a disk or a network.
	Activities int
	// Cache is how many loops stay in memory between their tasks. A loop that does not stay is replayed from its
	// history when it continues, which takes milliseconds. A loop that stays uses some 30 kB as long as it waits for
	// somebody. The SDK's default of 10,000 used 323 MB in a measurement, 500 used 53 MB. 0 keeps none.
	Cache int
	// StopTimeout is how long steps have to end when the worker stops: interrupt, grace for the agent's last usage
	// report, kill. The SDK's default is 0, which would cut them off.
	StopTimeout time.Duration
	// MoveAfter is how long an activity on this host for a loop with a repo.url may wait until the loop asks whether
	// the host is gone, and moves. A host that is only busy keeps the loop. 0 means never. The embedded engine
	// ignores it, because it is gone with its host.
	MoveAfter time.Duration
	// Triggers is the address on which the endpoint of the stewards' triggers listens, NoTriggers for none. If the
	// default port is taken, it listens on the next free port.
	Triggers string
	// Deployment and BuildID make this worker a version of a Temporal Worker Deployment. They are empty by default: a
	// versioned worker gets no task until somebody makes its version current, and loops keep their rules' version
	// themselves (GetVersion). Set both or neither.
	Deployment, BuildID string
}

// DefaultAgents is how many agents run at once by default, if they have slots of their own.
const DefaultAgents = 10

// Special values of Worker.Triggers.
const (
	DefaultTriggers = "127.0.0.1:8280"
	NoTriggers      = "off"
)

// workerEnvPrefix begins the names of the variables with the worker's settings: PAWL_WORKER_AGENTS.
const workerEnvPrefix = "PAWL_WORKER"

// WorkerSetting is one of the worker's settings.
type WorkerSetting struct {
	Flag    string // the flag of `pawl up` and the worker: "stop-timeout"
	Default string // "" for none
	Usage   string
	set     func(*Worker, string) error // the error says what the setting may be
}

// Env returns the setting's variable.
func (s WorkerSetting) Env() string {
	return workerEnvPrefix + "_" + strings.ToUpper(strings.ReplaceAll(s.Flag, "-", "_"))
}

// WorkerSettings lists all settings of the worker.
var WorkerSettings = []WorkerSetting{
	{"agents", "0", "agents that run at once; 0 means 10 with your own Temporal, and no separate limit with the embedded engine", number(0, func(w *Worker) *int { return &w.Agents })},
	{"activities", "100", "other activities that run at once", number(1, func(w *Worker) *int { return &w.Activities })},
	{"cache", "500", "loops kept in memory between their tasks", number(0, func(w *Worker) *int { return &w.Cache })},
	{"stop-timeout", "20s", "how long steps are given to end when the worker stops", length("a duration of at least a second, such as 20s", func(w *Worker) *time.Duration { return &w.StopTimeout })},
	{"move-after", "2m", "how long this host may leave work of a loop with a repo.url untouched before the loop checks whether the host is gone and moves; 0 means for ever",
		length("0, or a duration of at least a second, such as 2m", func(w *Worker) *time.Duration { return &w.MoveAfter })},
	{"triggers", DefaultTriggers, "address at which stewards' triggers are served over HTTP, while a steward has triggers other than health checks; off serves none",
		func(w *Worker, text string) error {
			_, port, err := net.SplitHostPort(text)
			if _, number := strconv.ParseUint(port, 10, 16); text != NoTriggers && (err != nil || number != nil) {
				return errors.New("an address such as " + DefaultTriggers + ", or " + NoTriggers)
			}
			w.Triggers = text
			return nil
		}},
	{"deployment", "", "Worker Deployment that this worker is a version of (needs build-id; without it, no versioning)",
		func(w *Worker, text string) error { w.Deployment = text; return nil }},
	{"build-id", "", "this build's name in the Worker Deployment", func(w *Worker, text string) error { w.BuildID = text; return nil }},
}

// DefaultWorker returns the settings of a worker by default.
func DefaultWorker() (w Worker) {
	for _, s := range WorkerSettings {
		_ = s.set(&w, s.Default) // a test sets all defaults
	}
	return w
}

func number(minimum int, field func(*Worker) *int) func(*Worker, string) error {
	return func(w *Worker, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < minimum || n > maxSlots {
			return fmt.Errorf("a number from %d to %d", minimum, maxSlots)
		}
		*field(w) = n
		return nil
	}
}

// maxSlots is more than any machine can run, and too few to exhaust its memory at once.
const maxSlots = 100000

// length reads a duration of a second or more, or 0 if that is one of the values that want names.
func length(want string, field func(*Worker) *time.Duration) func(*Worker, string) error {
	return func(w *Worker, text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second && (d != 0 || !strings.HasPrefix(want, "0")) {
			return errors.New(want)
		}
		*field(w) = d
		return nil
	}
}

// LoadWorker reads the worker's settings. Flags (flag → text) override the environment, which overrides the defaults.
// An empty variable counts as not set. The error has all problems, one on each line.
func LoadWorker(flags map[string]string) (Worker, error) {
	w := DefaultWorker()
	var wrong []string
	known := map[string]bool{}
	for _, s := range WorkerSettings {
		known[s.Env()] = true
		source, text := s.Env(), strings.TrimSpace(os.Getenv(s.Env()))
		if flag, given := flags[s.Flag]; given {
			source, text = "--"+s.Flag, strings.TrimSpace(flag)
		} else if text == "" {
			continue
		}
		if err := s.set(&w, text); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s is %q; it may be %v", source, text, err))
		}
	}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, workerEnvPrefix+"_") && !known[name] {
			wrong = append(wrong, name+" is not a setting of a worker")
		}
	}
	if (w.Deployment == "") != (w.BuildID == "") {
		wrong = append(wrong, "deployment and build-id belong together, but only "+cmp.Or(w.Deployment, w.BuildID)+" is given")
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return Worker{}, errors.New(strings.Join(wrong, "\n"))
	}
	return w, nil
}
