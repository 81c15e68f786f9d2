package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	sdk "go.temporal.io/sdk/client"

	"pawl/config"
	"pawl/internal/cli/render"
	"pawl/internal/client"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/spec/kind"
)

// follower shows one loop while it runs and carries its user's answers to it. All work is done in follow's select;
// the other goroutines only wait for something and pass it on.
type follower struct {
	*app
	s  *session
	o  runOptions
	id string

	state      loop.State
	live       api.Live // what the running step has spent and waits for
	seq        int64    // the number of the last event shown
	phaseSince time.Time
	course     render.Course
	beside     bool           // the loop explores a branch
	further    render.Further // how the further metrics developed
	kind       kind.Kind
	delivery   render.Delivery
	unpushed   string // why the last push was refused
	trouble    string // the last reported failure
	disk       room
	quietSince time.Time // since when nobody answers for the loop, zero while somebody does

	gate     *loop.Gate // the open gate that was shown last
	asking   bool
	approved bool         // the contract is approved
	warned   []loop.Event // warnings that the contract repeats, so they are not shown before it
	why      bool         // the question is why the change is rejected
	sent     chan error   // results of the messages sent
	halting  bool
	choosing <-chan time.Time // after Ctrl-C, ends the wait for an answer to what it means; nil otherwise
	runToken sdk.WorkflowRun
}

// redrawEvery is how often the moving line is drawn again.
const redrawEvery = 200 * time.Millisecond

// How often a followed loop is asked for news: often if somebody watches at a terminal, less often if lines are
// written to a file, because asking costs work too.
const (
	followEvery   = 200 * time.Millisecond
	followLogging = 500 * time.Millisecond
)

// lookEvery is how often pawl tries whether its disk can be written. If it can't, the engine can't even record that.
const lookEvery = 2 * time.Second

// follow shows the loop until it ends or its user leaves, then its report.
func (a *app) follow(parent context.Context, s *session, run sdk.WorkflowRun, o runOptions) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	f := &follower{app: a, s: s, o: o, id: run.GetID(), runToken: run, phaseSince: a.deps.Now(), sent: make(chan error, 4)}
	if o.watch {
		f.showRecorded(ctx)
	}
	endings := make(chan client.Ending, 1)
	go func() { endings <- s.Await(ctx, run) }()
	redraw := time.NewTicker(redrawEvery)
	defer redraw.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	interval := followLogging
	if a.screen.Moves() {
		interval = followEvery
	}
	updates, workerDone := s.Watch(ctx, f.id, interval), s.worker.done
	for {
		var err error
		news := updates
		if f.choosing != nil { // nothing is printed into a question; what happens meanwhile is shown after it
			news = nil
		}
		select {
		case u := <-news:
			err = f.update(ctx, u)
		case e := <-endings:
			if parent.Err() != nil {
				return f.leave(parent)
			}
			if f.choosing != nil { // the question has nothing to ask about any more
				f.choosing = nil
				f.screen.Print("")
			}
			return f.finish(parent, e)
		case <-redraw.C:
			f.draw()
		case <-look.C:
			if f.choosing == nil {
				f.disk.look(f.s, "The loop continues")
			}
		case <-f.choosing:
			f.screen.Print("")
			f.goOn("no answer")
		case line, open := <-f.typed:
			err = f.answer(ctx, line, open)
		case err := <-f.sent:
			f.replied(err)
		case sig := <-a.deps.Signals:
			err = f.signal(ctx, sig)
		case <-workerDone:
			if err := s.worker.err; err != nil {
				return fmt.Errorf("the worker failed, the loop %s stays: %w; see %s", f.id, err, s.logPath())
			}
			workerDone = nil
		}
		if err != nil {
			return err
		}
	}
}

// update handles news: it shows what is of note, and handles a gate that opened.
func (f *follower) update(ctx context.Context, u client.News) error {
	if u.Trouble != "" {
		if u.Trouble != f.trouble {
			f.say("%s (see %s)", render.Clean(u.Trouble), f.s.logPath())
		}
		f.trouble = u.Trouble
		return nil
	}
	if u.Live != nil {
		if u.Live.WaitsFor != "" && u.Live.WaitsFor != f.live.WaitsFor {
			f.say("waits for %s", render.Clean(u.Live.WaitsFor))
		}
		f.live = *u.Live
		return nil
	}
	if err := f.knows(u.State.Kind); err != nil {
		return err
	}
	if c := u.State.Contract; c != nil && c.ApprovedAt != nil {
		f.approved = true
	}
	asked := f.screen.Asking()
	f.show(u.Events)
	if u.Err != nil {
		if f.quietSince.IsZero() {
			f.quietSince = f.deps.Now()
		}
		return nil
	}
	f.quietSince = time.Time{}
	f.state, f.live = u.State, api.Live{}
	switch g := f.state.Gate; {
	case g == nil:
		if f.asking {
			f.say("answered from elsewhere")
		}
		f.gate, f.asking, f.why, f.reading = nil, false, false, nil
	case f.gate == nil || f.gate.ID != g.ID:
		f.gate, f.asking, f.why, f.reading = g, false, false, nil
		return f.opened(ctx, *g)
	case f.asking && asked && !f.screen.Asking(): // something was printed below the question
		f.askAgain()
	}
	return nil
}

// knows records the kind of the loop, as soon as the loop has said it.
func (f *follower) knows(name string) (err error) {
	if name != "" {
		f.kind, err = kind.Of(name)
	}
	return err
}

// show prints a line for each event of note and records the metric's course.
func (f *follower) show(events []loop.Event) {
	style := f.screen.Style()
	for _, e := range events {
		if e.Seq <= f.seq {
			continue
		}
		f.beside = render.Beside(f.beside, e)
		f.seq, f.course, f.further, f.delivery = e.Seq, f.course.Follow(e, f.beside), f.further.Follow(e, f.beside), f.delivery.Follow(e)
		switch {
		case e.Type == loop.PushRefused:
			f.unpushed = e.Reason
		case e.Type == loop.PhaseEntered:
			if f.phaseSince = e.Time; f.kind.PhaseLines {
				f.screen.Print(style.Phase(e))
			}
		case e.Type == loop.BaselineMeasured && e.Metric != nil:
			f.screen.Print(style.Baseline(e.Metric.String()))
		case e.Record != nil:
			f.screen.Print(style.Iteration(f.kind, *e.Record))
			if f.o.explain && !e.Record.Kept {
				f.screen.Print(style.Dim("        " + render.Meaning(f.kind, *e.Record)))
			}
		}
		if e.Type == loop.Warned && !f.approved {
			f.warned = append(f.warned, e)
			continue
		}
		if e.Type == loop.AutonomyStarted {
			f.approved = true
			f.showWarnings()
		}
		if line, ofNote := style.Note(e); ofNote && !f.knownHere(e) {
			f.screen.Print(line)
		}
	}
}

// knownHere reports whether an event says what the contract shows to the person who is asked here, or what that person
// has just answered.
func (f *follower) knownHere(e loop.Event) bool {
	if !f.terminal() || f.o.yes || f.o.watch {
		return false
	}
	isMine := e.By == config.User()
	if e.Answer != nil {
		isMine = e.Answer.By == config.User()
	}
	return e.Type == loop.LoopOpened || isMine && (e.Type == loop.AutonomyStarted || e.Type == loop.GateClosed)
}

// showWarnings shows the warnings that no contract has shown.
func (f *follower) showWarnings() {
	for _, e := range f.warned {
		if slices.Contains(f.notes, e.Reason) {
			continue
		}
		if line, ofNote := f.screen.Style().Note(e); ofNote {
			f.screen.Print(line)
		}
	}
	f.warned = nil
}

// showRecorded shows what the ledger on this host has of a loop so far. The loop itself knows only its last events.
func (f *follower) showRecorded(ctx context.Context) {
	r, err := f.s.Snapshot(ctx, f.id)
	if err != nil || f.knows(r.State.Kind) != nil {
		return
	}
	if recorded, err := f.s.Recorded(ctx, f.id); err != nil || !recorded.StartedAt.Equal(r.State.StartedAt) { // another loop of that name
		return
	}
	if events, err := f.s.History(ctx, f.id); err == nil {
		f.show(events)
	}
}

// room says when nothing can be written to pawl's files, and when that is over.
type room struct {
	none bool
	at   time.Time // the last look
}

// look says what has changed since the last time. waits is what continues then.
func (r *room) look(s *session, waits string) {
	now := s.app.deps.Now()
	if now.Sub(r.at) < lookEvery {
		return
	}
	r.at = now
	text := s.Home.Unwritable()
	switch {
	case text != "" && !r.none:
		s.app.say("%s. %s once it can be written again", text, waits)
	case text == "" && r.none:
		s.app.say("%s can be written again", s.Home.Dir)
	}
	r.none = text != ""
}

// draw draws the moving line. There is none while a question is open.
func (f *follower) draw() {
	if f.asking || f.choosing != nil || !f.screen.Moves() {
		return
	}
	now := f.deps.Now()
	state := f.state.Spending(f.live.Usage)
	state.WaitsFor = f.live.WaitsFor
	line := f.screen.Style().Progress(f.kind, state, f.phaseSince, now)
	if quiet := now.Sub(f.quietSince); !f.quietSince.IsZero() && quiet > client.QueryTimeout {
		line = "no worker answers for " + render.Duration(quiet) + "; still trying"
	}
	f.screen.Live(line)
}

// choiceTime is how long pawl waits for an answer to what Ctrl-C means. Then the loop goes on.
const choiceTime = 15 * time.Second

// signal handles a signal. At a terminal, Ctrl-C asks whether the loop goes on, or to detach, to pause or to end it.
// Elsewhere it ends the loop. A second Ctrl-C leaves at once. On SIGTERM or a closed terminal the process leaves at once
// too, because nobody said that the loop should end.
func (f *follower) signal(ctx context.Context, sig os.Signal) error {
	if sig != syscall.SIGINT && sig != os.Interrupt || f.halting || f.choosing != nil || f.o.watch {
		return f.leave(ctx)
	}
	if !f.terminal() {
		f.end(ctx)
		return nil
	}
	f.asking, f.why, f.reading, f.choosing = false, false, nil, f.deps.After(choiceTime)
	f.screen.Still()
	f.screen.Print("")
	f.listen()
	f.askNow("Enter: go on; d: detach; p: pause; end: end it. Ctrl-C again leaves at once: ")
	return nil
}

// chosen carries out the answer to what Ctrl-C means. Only a whole word ends the loop.
func (f *follower) chosen(ctx context.Context, line string) error {
	switch answered(line) {
	case "d", "detach":
		return f.leave(ctx)
	case "p", "pause":
		if f.state.Status == loop.Paused {
			f.goOn("")
			break
		}
		f.choosing = nil
		f.send(ctx, loop.MessagePause, loop.Message{By: config.User(), Note: "Ctrl-C"})
		if f.gate != nil {
			f.say("pausing if the loop goes on after this question; then `pawl continue %s` resumes it", f.id)
			f.ask()
			break
		}
		f.say("pausing; `pawl continue %s` resumes it", f.id)
	case "end":
		f.end(ctx)
	case "":
		f.goOn("")
	default:
		f.goOn(strconv.Quote(strings.TrimSpace(line)) + " is none of these")
	}
	return nil
}

// goOn continues after Ctrl-C as if nothing had been typed; reason says why, unless the person said so.
func (f *follower) goOn(reason string) {
	f.choosing = nil
	f.say("%s%s", render.Around("", render.Clean(reason), "; "), f.prospect())
	if f.gate != nil {
		f.ask()
	}
}

// prospect says what becomes of the loop if nothing is changed.
func (f *follower) prospect() string {
	switch {
	case f.state.Status == loop.Paused:
		return "the loop stays paused"
	case f.gate != nil:
		return "the loop waits for your answer"
	}
	return "the loop goes on"
}

// end ends the loop, with its report.
func (f *follower) end(ctx context.Context) {
	f.halting, f.asking, f.why, f.choosing = true, false, false, nil
	f.screen.Still()
	f.screen.Print("")
	f.say("ending the loop; its report follows (Ctrl-C again leaves at once, and the loop stays)")
	f.send(ctx, loop.MessageHalt, loop.Message{By: config.User(), Note: "Ctrl-C"})
}

// leaveTimeout is how long leaving at once may take.
const leaveTimeout = 2 * time.Second

// leave ends this process and says what becomes of the loop: it goes on, waits for a worker, or for a person.
func (f *follower) leave(ctx context.Context) error {
	f.screen.Still()
	isWorker := f.s.worker.polls.Load()
	served := isWorker || f.s.Served(context.WithoutCancel(ctx))
	if isWorker {
		f.s.worker.stop(leaveTimeout)
	}
	state, next := f.resting()
	switch {
	case isWorker && state != "":
		f.say("left; the loop %s %s. After `pawl up`, %s", f.id, state, next)
	case isWorker:
		f.say("left; the loop %s waits for `pawl up`, which resumes it. `pawl show %s` shows it", f.id, f.id)
	case served && state != "":
		f.say("left; the loop %s %s. %s", f.id, state, next)
	case served:
		f.say("left; the loop %s goes on in its worker. `pawl show %s` shows it", f.id, f.id)
	default:
		f.say("left; no worker runs, so the loop %s waits until one does (%s). `pawl show %s` shows it", f.id, f.s.AWorker(), f.id)
	}
	return &leaving{code: exitInterrupted}
}

// resting says that the loop waits for a person, and which command ends that; "" if it is at work.
func (f *follower) resting() (state, next string) {
	switch {
	case f.state.Status == loop.Paused:
		return "is paused", fmt.Sprintf("`pawl continue %s` resumes it", f.id)
	case f.gate != nil:
		return "waits for your answer", fmt.Sprintf("`pawl show %s` says how to give it", f.id)
	}
	return "", ""
}

// send sends a message to the loop without blocking the screen.
func (f *follower) send(ctx context.Context, name string, m loop.Message) {
	go func() {
		_, err := f.s.Send(ctx, f.id, name, m)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		select {
		case f.sent <- err:
		case <-ctx.Done():
		}
	}()
}

// replied shows why a message was refused, and asks again if its question is still open.
func (f *follower) replied(err error) {
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	f.explain(err)
	if f.gate != nil && !f.halting && f.terminal() {
		f.ask()
	}
}

// opened handles a gate. It approves a contract that --yes approves, asks the person at the terminal, and leaves if
// there is none (exit code 4).
func (f *follower) opened(ctx context.Context, g loop.Gate) error {
	if f.halting {
		return nil
	}
	f.screen.Still()
	f.showGate(ctx, f.s, f.state, f.terminal() && !f.o.watch)
	f.showWarnings()
	switch {
	case f.o.watch:
		return nil
	case g.Kind == loop.GateContract && f.o.yes:
		f.say("approving this contract (%s)", f.o.note)
		f.send(ctx, loop.MessageApprove, loop.Message{By: config.User(), Note: f.o.note, Gate: g.ID, Hash: g.Hash})
		return nil
	case f.choosing != nil:
		return nil
	case f.terminal():
		f.ask()
		return nil
	}
	return f.nobody(g, "there is no terminal to ask at")
}

// nobody leaves a loop that waits for an answer when there is nobody to ask; reason says why.
func (f *follower) nobody(g loop.Gate, reason string) error {
	if g.Kind == loop.GateContract || f.terminal() { // the commands that answer it were not shown
		f.screen.Print(f.screen.Style().Gate(f.id, g, f.budget(), f.deps.Now()))
	}
	next := "Answer as above"
	if !f.deps.Thin { // the worker ends with this process, and there may be no other
		next += "; the loop continues while a worker runs (" + f.s.AWorker() + ")"
	}
	f.say("the loop %s waits for an answer, but %s; it stays. %s", f.id, reason, next)
	if f.json {
		if err := f.printJSON(f.outcome(f.state.Status, nil, &g)); err != nil {
			return err
		}
	}
	return &leaving{code: exitGate}
}
