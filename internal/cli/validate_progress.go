package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"pawl/activities/preflight"
	"pawl/internal/cli/render"
	"pawl/internal/spec"
)

// progress shows which step of a dry run is running, and for how long: on the moving line of a terminal, else in
// lines that become rarer the longer the step takes.
type progress struct {
	a        *app
	what     string
	commands map[string]string // of the steps, by their names
	lasting  bool              // each step leaves a line with its duration

	steps chan string // those that begin
	ended sync.WaitGroup
}

// progress starts to show the steps of a dry run. activity says what runs.
func (a *app) progress(activity string, sp spec.Spec, lasting bool) *progress {
	p := &progress{a: a, what: activity, lasting: lasting, steps: make(chan string), commands: map[string]string{
		"setup": sp.Setup.Command, "verify": sp.Verify.Command, preflight.VerifyAgain: sp.Verify.Command, "guard": sp.Guard.Command, "canary": sp.Guard.Command, "test": sp.Test.Command, "check": sp.Check.Command,
	}}
	p.ended.Go(p.follow)
	return p
}

// begin notes that the next step begins and the previous one is over. A step that begins again goes on.
func (p *progress) begin(step string) { p.steps <- step }

func (p *progress) stop() {
	close(p.steps)
	p.ended.Wait()
}

// follow shows the steps until stop is called.
func (p *progress) follow() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	step, times, started, pace := "", 0, time.Time{}, render.Pace{}
	for {
		select {
		case next, hasMore := <-p.steps:
			if hasMore && next == step {
				times++
				continue
			}
			p.over(step, times, p.a.deps.Now().Sub(started))
			if !hasMore {
				return
			}
			step, times, started, pace = next, 1, p.a.deps.Now(), render.Pace{}
			p.show(step, 0)
		case <-ticker.C:
			took := p.a.deps.Now().Sub(started)
			if step == "" || took < time.Second {
				continue
			}
			p.show(step, took)
			if !p.a.screen.Moves() && pace.Due(took) {
				p.a.say("%s has been running for %s%s", render.Clean(step), render.Duration(took), p.command(step))
			}
		}
	}
}

// over leaves the line of a step that is over, if there was one. It says how often the step ran, if it did more than once.
func (p *progress) over(step string, times int, took time.Duration) {
	p.a.screen.Still()
	often := ""
	if times > 1 {
		often = fmt.Sprintf(" (%d times)", times)
	}
	if step != "" && !p.a.json && (p.lasting && p.a.terminal() || took >= render.FirstWord) {
		p.a.screen.Print(fmt.Sprintf("  %-13s %s%s\n", render.Clean(step), took.Round(100*time.Millisecond), often))
	}
}

// show writes the step to the moving line.
func (p *progress) show(step string, took time.Duration) {
	text := p.what + ": " + render.Clean(step)
	if took > 0 {
		text += " (" + render.Duration(took.Truncate(time.Second)) + ")"
	}
	p.a.screen.Live(text + " …")
}

// command returns what the step runs, "" if it is no command of the spec.
func (p *progress) command(step string) string {
	name, _, _ := strings.Cut(strings.ReplaceAll(step, ",", ":"), ":")
	return render.Around(": ", render.Clean(p.commands[name]), "")
}
