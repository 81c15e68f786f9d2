package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"pawl/internal/spec"
	"pawl/internal/ui"
)

// progress shows which step of a dry run is running, and for how long: on the moving line of a terminal, else in
// lines that become rarer the longer the step takes.
type progress struct {
	a        *app
	what     string
	commands map[string]string // of the steps, by their names
	lasting  bool              // each step leaves a line with its duration

	mu    sync.Mutex
	step  string
	since time.Time
	pace  ui.Pace
	end   chan struct{}
	ended sync.WaitGroup
}

// progress starts to show the steps of a dry run. what names the activity.
func (a *app) progress(what string, sp spec.Spec, lasting bool) *progress {
	p := &progress{a: a, what: what, lasting: lasting, end: make(chan struct{}), commands: map[string]string{
		"setup": sp.Setup.Command, "verify": sp.Verify.Command, "guard": sp.Guard.Command, "canary": sp.Guard.Command, "test": sp.Test.Command, "check": sp.Check.Command,
	}}
	p.ended.Go(func() {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for {
			select {
			case <-p.end:
				return
			case <-every.C:
				p.tick()
			}
		}
	})
	return p
}

// begin notes that the next step begins and the previous one is over.
func (p *progress) begin(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over()
	p.step, p.since, p.pace = step, p.a.deps.Now(), ui.Pace{}
	p.show(0)
}

func (p *progress) stop() {
	close(p.end)
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over()
}

func (p *progress) over() {
	p.a.screen.Still()
	took := p.a.deps.Now().Sub(p.since)
	if p.step != "" && !p.a.json && (p.lasting && p.a.terminal() || took >= ui.FirstWord) {
		p.a.screen.Print(fmt.Sprintf("  %-13s %s\n", ui.Clean(p.step), took.Round(100*time.Millisecond)))
	}
	p.step = ""
}

// tick shows how long the step has been running.
func (p *progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	took := p.a.deps.Now().Sub(p.since)
	if p.step == "" || took < time.Second {
		return
	}
	p.show(took)
	if !p.a.screen.Moves() && p.pace.Due(took) {
		p.a.say("%s has been running for %s%s", ui.Clean(p.step), ui.Duration(took), p.command())
	}
}

// show writes the step to the moving line.
func (p *progress) show(took time.Duration) {
	text := p.what + ": " + ui.Clean(p.step)
	if took > 0 {
		text += " (" + ui.Duration(took.Truncate(time.Second)) + ")"
	}
	p.a.screen.Live(text + " …")
}

// command returns what the step runs, "" if it is no command of the spec.
func (p *progress) command() string {
	name, _, _ := strings.Cut(strings.ReplaceAll(p.step, ",", ":"), ":")
	if command := p.commands[name]; command != "" {
		return ": " + ui.Clean(command)
	}
	return ""
}
