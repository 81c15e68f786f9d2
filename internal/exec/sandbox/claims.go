package sandbox

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/spec"
)

// Claim is a sentence of the contract about the sandbox, with what must be tried before it may be said.
type Claim struct {
	Holds string     // the sentence if nothing in Asked worked
	Fails string     // the sentence if something did
	Asked []Question // none of these may work
	// Wish marks a claim that the spec does not ask for. If it fails, the contract says so, and nothing is broken.
	Wish bool
	// Open marks a claim whose sentence, even if it holds, says that something is not protected.
	Open bool
	// Bound marks a claim about a limit of memory or processes.
	Bound bool
}

// Broken is a claim that does not hold.
type Broken struct {
	Text  string
	Bound bool // it is about a limit of memory or processes
}

// Facts are the input for claims.
type Facts struct {
	Policy  Policy
	Repo    string   // the user's repository, "" if it is not on this host
	Engine  []string // host:port of the engine, its UI and the triggers; also the name of an external engine
	Auth    bool     // the engine answers nobody without the token, which is in $PAWL_HOME
	Private []string // what must not be readable of $PAWL_HOME and the user's home
	Sockets []string // Unix sockets of other programs
	Allow   []string // sandbox.allow
	// DefaultProcesses says that the spec sets no limit of processes.
	DefaultProcesses bool
}

// Claims returns the sentences about a sandbox, in the order of the contract (E6).
func Claims(f Facts) []Claim {
	m := f.Policy.Machine
	means, written, inRepo := string(m.Files), "", ""
	for _, path := range f.Allow {
		if grantedPath, around := f.Policy.granted(path); grantedPath != "" && around.Access == Write {
			written = " (but for what sandbox.allow lets them write)"
			if within(grantedPath, f.Repo) && f.Repo != "" {
				inRepo = written
			}
		}
	}
	caches := "what builds cache there, under a layer of the loop's own"
	if !m.Overlay {
		caches = "empty caches of the loop's own"
	}
	files := Claim{
		Holds: "sandbox, by " + means + ": agent and commands see the system's folders, toolchains and harmless settings in your home, and what the spec names, read-only; " + caches + "; and nothing else of this machine" + written + ": not $PAWL_HOME, not the rest of your home, not other programs' sockets",
		Fails: "NO SANDBOX FOR FILES: agent and commands could reach $PAWL_HOME, your home or other programs' sockets",
	}
	for _, path := range f.Private {
		files.Asked = append(files.Asked, Question{Reading, path})
	}
	for _, path := range f.Sockets {
		files.Asked = append(files.Asked, Question{Dialing, path})
	}
	claims := []Claim{files}
	if f.Repo != "" {
		claims = append(claims, Claim{
			Holds: "sandbox, by " + means + ": your repository can be read but not written" + inRepo,
			Fails: "YOUR REPOSITORY CAN BE WRITTEN by agent and commands",
			Asked: []Question{{Writing, f.Repo}, {Writing, f.Repo + "/.git"}},
		})
	}
	network := Claim{Fails: "THE ENGINE CAN BE REACHED: agent and commands could answer a gate"}
	// A command that can read files can read the token.
	engineAsks := f.Policy.Network == Open && f.Auth && m.Files != ByNothing
	network.Open = f.Policy.Network == Open
	switch {
	case engineAsks:
		network.Holds = "THE NETWORK IS THIS MACHINE'S: agent and commands reach every service here and elsewhere; the engine and its UI answer nobody without pawl's token, which is out of their reach, but an agent could still answer its own gates through another program that reads your files"
	case f.Policy.Network == Open && len(f.Policy.Closed) == 0:
		network.Holds = "THE NETWORK IS THIS MACHINE'S, and no port of Temporal's could be closed: an agent could answer its own gates"
	case f.Policy.Network == Open:
		network.Holds = "THE NETWORK IS THIS MACHINE'S: agent and commands reach every service here and elsewhere; only Landlock closes ports of the engine, its UI and the stewards' triggers (no connection to port " + ports(f.Policy.Closed) + "), so through another port of the engine, such as its HTTP API, or another program, an agent could answer its own gates"
	case f.Policy.Network == None:
		network.Holds = "sandbox, by " + means + ": a network of their own, with no way out"
	default:
		network.Holds = "sandbox, by " + means + ": a network of their own, whose only way out is pawl's proxy, which lets " + wanted(f.Policy)
	}
	for _, address := range f.Engine {
		if _, err := netip.ParseAddrPort(address); err == nil { // a name is useless without a resolver
			deed := Connecting
			if engineAsks {
				deed = Asking
			}
			network.Asked = append(network.Asked, Question{deed, address})
		}
		if f.Policy.Network == Filtered {
			network.Asked = append(network.Asked, Question{Through, address})
		}
	}
	claims = append(claims, network)
	apart := "sandbox: no other process can be seen, signalled or traced, pawl's included"
	if m.Landlock < landlockScope {
		apart = "sandbox: no other process can be seen or traced; signals can be sent to the loop's supervisor, which drops them"
	}
	claims = append(claims, Claim{
		Holds: apart,
		Fails: "PROCESSES ARE NOT SEPARATE: agent and commands could end or trace pawl's processes; pawl starts again what they end",
		Asked: []Question{{Mingling, ""}},
	})
	calls := Claim{
		Holds: "sandbox: only kernel calls on a list are allowed (those of containers, and those that build sandboxes); no io_uring, no keyrings, no foreign instruction sets",
		Fails: "EVERY KERNEL CALL IS OPEN to agent and commands",
		Asked: []Question{{Calling, ""}},
	}
	return append(append(claims, calls), bounds(f)...)
}

// Grants says what each path of sandbox.allow gives access to.
func Grants(p Policy, allow []string) (lines []string) {
	for _, path := range allow {
		grantedPath, around := p.granted(path)
		shown := path
		if grantedPath != "" && grantedPath != path {
			shown += " (" + grantedPath + ")"
		}
		switch {
		case grantedPath == "":
			lines = append(lines, "agent and commands may write "+path+" if it exists when they start (now it does not)")
		case around.Access == Write:
			lines = append(lines, "agent and commands may write "+shown)
		case around.Access == Read:
			lines = append(lines, "agent and commands can read "+shown+", but not write it, although sandbox.allow names it")
		default:
			lines = append(lines, "agent and commands do not reach "+shown+", although sandbox.allow names it")
		}
	}
	return lines
}

// maxNamed is how many paths Named lists.
const maxNamed = 10

// Named returns, in sentences, what commands can read because the spec names it: by policy p, but not by the policy
// that the same loop would have without named paths.
func Named(p, unnamed Policy) (lines []string) {
	hidden := 0
	for _, l := range p.Places {
		if l.Access != Read || covering(unnamed.Places, l.Path).Access >= Read {
			continue
		}
		if hidden++; len(lines) < maxNamed {
			lines = append(lines, "agent and commands can read "+l.Path+", since the spec names it or a program in it")
		}
	}
	if hidden -= len(lines); hidden > 0 {
		lines = append(lines, fmt.Sprintf("agent and commands can read %d more that the spec names", hidden))
	}
	return lines
}

// granted returns where a path of sandbox.allow is, "" if it does not exist, and the place that it is in.
func (p Policy) granted(path string) (grantedPath string, around Place) {
	grantedPath = resolved(allowed(path, homes()))
	return grantedPath, covering(p.Places, grantedPath)
}

// InWords returns broken claims as one sentence.
func InWords(broken []Broken) string {
	return strings.Join(list.Map(broken, func(b Broken) string { return b.Text }), "; ")
}

// OnlyBounds reports whether claims are broken, and all of them are about limits of memory and processes.
func OnlyBounds(broken []Broken) bool {
	return len(broken) > 0 && !slices.ContainsFunc(broken, func(b Broken) bool { return !b.Bound })
}

// Unkept returns the limits of the spec that pawl's cgroups can't keep. It tries small limits, with cgroups of a
// token.
func Unkept(token string) (limits []string) {
	for _, l := range []struct{ name, what string }{{"limits.memory", memoryBound}, {"limits.processes", processBound}} {
		if Outgrows(token, l.what) {
			limits = append(limits, l.name)
		}
	}
	return limits
}

// bounds returns the claims about memory and processes.
func bounds(f Facts) []Claim {
	l := f.Policy.Limits
	memory := Claim{Holds: "memory is not bounded: limits.memory is not set"}
	if l.Memory > 0 {
		memory = Claim{
			Holds: "sandbox: all that runs at a time has at most " + spec.Size(l.Memory).String() + " of memory (limits.memory), files in /tmp included; when it is used up, the kernel ends processes of the command",
			Fails: "MEMORY IS NOT BOUNDED: pawl can make no cgroup here that keeps limits.memory",
			Asked: []Question{{Outgrowing, memoryBound}},
			Bound: true,
		}
	}
	if l.Processes == 0 {
		return []Claim{memory}
	}
	return []Claim{memory, {
		Holds: fmt.Sprintf("sandbox: at most %d processes and threads run at a time (limits.processes)", l.Processes),
		Fails: "PROCESSES ARE NOT BOUNDED: pawl can make no cgroup here that keeps limits.processes",
		Asked: []Question{{Outgrowing, processBound}},
		Bound: true,
		Wish:  f.DefaultProcesses,
	}}
}

// wanted says what the proxy allows.
func wanted(p Policy) string {
	if len(p.Egress.Hosts) == 0 {
		return "connections through to every host but this one and its containers, cloud metadata, the engine and its UI, and the repository's remote"
	}
	return "connections through to these hosts alone: " + strings.Join(p.Egress.Hosts, ", ") + "; and never to this host, cloud metadata, the engine and its UI, or the repository's remote"
}

func ports(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}

// Said returns the sentences that may be said after the findings, and the claims that do not hold. A claim without
// findings does not hold either.
func Said(claims []Claim, found []Finding) (lines []string, broken []Broken) {
	failed := failedOf(found)
	for _, c := range claims {
		if c.holds(failed) {
			lines = append(lines, c.Holds)
			continue
		}
		lines = append(lines, c.Fails)
		if !c.Wish {
			broken = append(broken, Broken{c.Fails, c.Bound})
		}
	}
	return lines, broken
}

// Lacking returns the sentences about what a sandbox does not protect, after the findings.
func Lacking(claims []Claim, found []Finding) (lacks []string) {
	failed := failedOf(found)
	for _, c := range claims {
		switch {
		case !c.holds(failed):
			lacks = append(lacks, c.Fails)
		case c.Open:
			lacks = append(lacks, c.Holds)
		}
	}
	return lacks
}

// failedOf returns what was tried and did not work.
func failedOf(found []Finding) map[Question]bool {
	failed := map[Question]bool{}
	for _, f := range found {
		failed[f.Question] = !f.Done
	}
	return failed
}

// holds reports whether nothing of what the claim asks worked.
func (c Claim) holds(failed map[Question]bool) bool {
	return !slices.ContainsFunc(c.Asked, func(q Question) bool { return !failed[q] })
}

// Asked returns the questions of all claims.
func Asked(claims []Claim) (questions []Question) {
	for _, c := range claims {
		questions = append(questions, c.Asked...)
	}
	return questions
}
