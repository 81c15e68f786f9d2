package supervisor

import (
	"errors"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"

	"pawl/internal/exec/egress"
	"pawl/internal/exec/sandbox"
)

// room is a thread that is in a sandbox and starts commands there. Entering costs time once; after that, a command
// costs no more than outside.
type room struct {
	key, tree string
	work      chan func()
	entered   chan struct{} // closed when the thread has entered, or can't
	err       error         // why it can't; read it after entered
	proxy     net.Listener  // the way out of its network, nil if there is none; read it after entered
}

// maxRooms is how many rooms are kept: those of the agent's programs and of the judge.
const maxRooms = 4

// within calls do in a sandbox, or right here without a policy. An error means that the sandbox could not be entered;
// then do was not called.
func (s *server) within(p *sandbox.Policy, do func()) error {
	if p == nil {
		do()
		return nil
	}
	if p.Rooted() {
		if err := p.InPlace(); err != nil {
			return err
		}
	}
	entered, made := s.enter(*p)
	<-entered.entered
	for entered.err != nil {
		s.rooms = slices.DeleteFunc(s.rooms, func(r *room) bool { return r == entered })
		if made {
			return entered.err
		}
		entered, made = s.enter(*p) // the room made ahead was not usable
		<-entered.entered
	}
	done := make(chan struct{})
	entered.work <- func() {
		defer close(done)
		do()
	}
	<-done
	return nil
}

// prepare makes a room for the next command, unless the running command works in the same tree: a tree has only one
// room at a time.
func (s *server) prepare(p sandbox.Policy) {
	if s.running == nil || s.running.Tree != p.Tree {
		s.enter(p)
	}
}

// clear gives up the room of a command that used up its memory. Files in its /tmp count as memory, so the next command
// would be killed for them.
func (s *server) clear(p *sandbox.Policy) {
	key := p.Key()
	s.rooms = slices.DeleteFunc(s.rooms, func(other *room) bool {
		if other.key == key {
			other.leave()
		}
		return other.key == key
	})
	s.bounds.Relieved()
}

// bound sets the limits for what starts from now on, as far as this machine can enforce them. The contract says what it
// can't.
func (s *server) bound(l sandbox.Limits) *sandbox.Bounds {
	if s.bounds == nil || s.bounds.Limits != l {
		if s.bounds != nil {
			s.bounds.Close()
		}
		s.bounds, _ = sandbox.NewBounds(s.token, l)
	}
	return s.bounds
}

// enter returns the thread that is in the sandbox of p, or on its way there, and whether the call made it. A tree has
// one room at a time, because two rooms would write to the same layer.
func (s *server) enter(p sandbox.Policy) (entered *room, made bool) {
	key := p.Key()
	for _, room := range s.rooms {
		if room.key == key {
			return room, false
		}
	}
	var oldest *room
	if len(s.rooms) == maxRooms {
		oldest = s.rooms[0]
		if s.running != nil && oldest.tree == s.running.Tree { // a command ends with its room
			oldest = s.rooms[1]
		}
	}
	s.rooms = slices.DeleteFunc(s.rooms, func(other *room) bool {
		if p.Tree != "" && other.tree == p.Tree || other == oldest {
			other.leave()
			return true
		}
		return false
	})
	join := func() error { return nil }
	if p.Limits != (sandbox.Limits{}) {
		join = s.bound(p.Limits).Join
	}
	entered = &room{key: key, tree: p.Tree, work: make(chan func()), entered: make(chan struct{})}
	go func() {
		// The thread is never unlocked, so it ends with the goroutine and runs nothing else. The runtime clones no
		// thread from a locked one. Commands are killed when the thread that forked them ends, so the thread stays.
		runtime.LockOSThread()
		proxy, err := sandbox.Enter(p)
		if err == nil {
			err = join()
		}
		entered.proxy, entered.err = proxy, err
		close(entered.entered)
		if err != nil {
			entered.closeProxy()
			return
		}
		if entered.proxy != nil {
			go func() { _ = egress.Serve(entered.proxy, p.Egress, &s.metering, s.refusals.add) }()
		}
		for do := range entered.work {
			do()
		}
	}()
	s.rooms = append(s.rooms, entered)
	return entered, true
}

// leave ends the thread. No command of its own runs, because there is one command at a time.
func (r *room) leave() {
	close(r.work)
	go func() {
		<-r.entered
		r.closeProxy()
	}()
}

func (r *room) closeProxy() {
	if r.proxy != nil {
		r.proxy.Close()
	}
}

// serveHanded runs the proxy of one command until the command's network is gone. It first reports whether the command
// has begun.
func (s *server) serveHanded(conn *os.File, r egress.Rules, begun chan<- error) {
	l, err := sandbox.Begun(conn)
	s.hold(l)
	begun <- err
	if l != nil {
		_ = egress.Serve(l, r, &s.metering, s.refusals.add)
	}
}

// hold keeps the listener of the running command, nil for none, and closes the one before.
func (s *server) hold(l net.Listener) {
	if previous := s.handed.Swap(&l); previous != nil && *previous != nil {
		(*previous).Close()
	}
}

// maxRefusals is how many different refusals of the proxy are reported for one command.
const maxRefusals = 20

// refusals collects the connections that the proxy refused.
type refusals struct {
	mu  sync.Mutex
	all []egress.Refusal
}

func (r *refusals) add(target, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	refusal := egress.Refusal{Target: target, Why: reason}
	if len(r.all) < maxRefusals && !slices.Contains(r.all, refusal) {
		r.all = append(r.all, refusal)
	}
}

func (r *refusals) take() []egress.Refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	refused := r.all
	r.all = nil
	return refused
}

// Check asks what is possible in a sandbox.
type Check struct {
	Sandbox sandbox.Policy
	Asked   []sandbox.Question
}

// check tries it in the room in which commands run. The supervisor tries limits itself.
func (s *server) check(c Check) (found []sandbox.Finding, err error) {
	var asked []sandbox.Question
	for _, q := range c.Asked {
		if q.Deed == sandbox.Outgrowing {
			found = append(found, sandbox.Finding{Question: q, Done: sandbox.Outgrows(s.token, q.Target)})
		} else {
			asked = append(asked, q)
		}
	}
	sandboxErr := s.within(&c.Sandbox, func() {
		var answers []sandbox.Finding
		answers, err = sandbox.Answer(c.Sandbox, asked)
		found = append(found, answers...)
	})
	return found, errors.Join(sandboxErr, err)
}
