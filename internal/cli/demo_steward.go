package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"pawl/config"
	"pawl/internal/cli/demo"
	"pawl/internal/fault"
	"pawl/internal/loop"
	"pawl/internal/steward"
	"pawl/internal/steward/task"
)

func (a *app) demoStewardCommand() *cobra.Command {
	return &cobra.Command{
		Use: "steward", Short: "Run an example steward: tasks, an approval, an interrupt, a circle", Args: noArguments,
		Long: `Run an example steward that takes five tasks for a café, with scripts as agents. One
task runs by itself, one asks for an approval, one is interrupted by an urgent one and
goes on afterwards, and one goes in circles until it is stopped and cancelled. It needs
git, but no API key. The demo gives the answers itself, and shows the commands.`,
		PreRunE: a.command(a.configureWorker),
		RunE:    a.brief(func(ctx context.Context, _ []string) error { return a.runDemoSteward(ctx) }),
	}
}

func (a *app) runDemoSteward(ctx context.Context) error {
	d, name, err := a.unpackDemo(ctx, demo.Steward, "git", "sh")
	if err != nil {
		return err
	}
	c, err := config.LoadCharter(d.Spec, []string{"name=" + name})
	if err != nil {
		return err
	}
	s, err := a.reach(ctx, true)
	if err != nil {
		return err
	}
	defer s.close()
	s.startWorker(context.WithoutCancel(ctx))
	a.say("a steward takes five tasks for a café; its agents are scripts")
	a.say("repository %s, spec %s", d.Repo, d.Spec)
	run, err := s.StartSteward(ctx, c, config.User(), "")
	if err != nil {
		return err
	}
	a.say("steward %s on %s", name, where(s, name))
	p := &stewardDemo{app: a, s: s, d: d, name: name}
	if err := p.play(ctx); err != nil {
		if ctx.Err() != nil {
			a.say("left; the steward %s stays where it is. `pawl up` serves it again, `pawl steward show %s` shows it", name, name)
		}
		return err
	}
	st, err := s.StewardState(ctx, name)
	if err != nil {
		return s.Unreachable(ctx, err)
	}
	if _, err := s.SendTask(ctx, name, loop.MessageHalt, steward.Message{By: config.User(), Note: "the demo is over"}); err != nil {
		return err
	}
	if err := run.Get(ctx, nil); err != nil {
		return s.Unreachable(ctx, err)
	}
	return a.print(a.style().StewardReport(st))
}

// stewardDemo submits the demo's tasks and answers its steward's questions.
type stewardDemo struct {
	*app
	s    *session
	d    demo.Demo
	name string

	seq    int64 // the number of the last event that was shown
	urgent bool  // the urgent task is submitted
	over   int   // how many tasks are over
}

// play runs until all tasks are over.
func (p *stewardDemo) play(ctx context.Context) error {
	for _, id := range demo.Tasks {
		if err := p.submit(ctx, id); err != nil {
			return err
		}
	}
	for p.over < len(demo.Tasks)+1 { // and the urgent one
		v, err := p.s.Events(ctx, p.name, p.seq)
		if err != nil && ctx.Err() == nil {
			return p.s.Unreachable(ctx, err)
		}
		for _, e := range v.Events {
			p.seq = e.Seq
			if err := p.happened(ctx, e); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.s.worker.done:
			return fmt.Errorf("the worker ended: %w; see %s", p.s.worker.err, p.s.logPath())
		case <-time.After(followEvery):
		}
	}
	return nil
}

// happened shows an event and does what a person would do about it.
func (p *stewardDemo) happened(ctx context.Context, e loop.Event) error {
	line, ofNote := p.screen.Style().Note(e)
	iterated := e.Type == loop.ActionTaken && e.Action != nil && e.Action.What == task.Iterated
	if ofNote || iterated {
		p.screen.Print(line)
	}
	switch {
	case e.Type == loop.GateOpened && e.Gate != nil:
		return p.answer(ctx, *e.Gate)
	case e.Type == loop.ChildReported && e.Child != nil && e.Child.Gate != nil && e.Child.Gate.Kind != string(loop.GatePause):
		return fault.New(fault.PreconditionFailed, "the loop %s asks something that the demo can't answer: %s", e.Child.Loop, e.Child.Gate.Summary).
			Advise("Start `pawl up`, then see `pawl inbox`.")
	case iterated && e.Task == demo.Interrupted && !p.urgent:
		p.urgent = true
		return p.submit(ctx, demo.Urgent)
	case e.Type == loop.TaskEnded:
		p.over++
	case e.Type == loop.StewardEnded:
		return fault.New(fault.GateClosed, "the steward %s was ended from elsewhere", p.name).Advise("Start the demo again.")
	}
	return nil
}

// submit submits a task and shows the command for that.
func (p *stewardDemo) submit(ctx context.Context, id string) error {
	path := filepath.Join(p.d.Tasks, id+".md")
	t, err := config.LoadTask(path, p.in)
	if err != nil {
		return err
	}
	doc, err := json.Marshal(t)
	if err != nil {
		return err
	}
	p.say("the demo submits a task: pawl steward submit %s %s", p.name, filepath.Join("tasks", id+".md"))
	_, err = p.s.SendTask(ctx, p.name, steward.MessageSubmit, steward.Message{Task: doc, By: config.User()})
	return err
}

// answer approves a plan and cancels a task that goes in circles. The demo asks nothing else.
func (p *stewardDemo) answer(ctx context.Context, g loop.Gate) error {
	p.screen.Print(p.screen.Style().StewardGate(p.name, g, p.deps.Now()))
	choice := map[loop.GateKind]string{steward.GateTier: "", steward.GateStuck: steward.Cancel}
	want, expected := choice[g.Kind]
	for _, w := range steward.Ways(p.name, g) {
		if got, _ := w.Payload["choice"].(string); !expected || got != want {
			continue
		}
		doc, err := json.Marshal(w.Payload)
		if err != nil {
			return err
		}
		m, err := steward.Decode(doc)
		if err != nil {
			return err
		}
		m.By, m.Note = config.User(), "the demo's own answer"
		p.say("the demo answers: %s", w.Command)
		_, err = p.s.SendTask(ctx, p.name, w.Message, m)
		return err
	}
	return fault.New(fault.PreconditionFailed, "the steward %s asks something that the demo can't answer", p.name).
		Advise("Start `pawl up`, then answer as above.")
}
