package proc

import (
	"runtime"

	"pawl/internal/sandbox"
)

// room is a thread that is in a sandbox and starts commands there. To enter costs time once; after that a
// command costs no more than any other.
type room struct {
	key  string
	work chan func()
}

// maxRooms is how many are kept: one for the agent and one for the judge, and theirs from before the
// trees were made anew.
const maxRooms = 4

// within does something in a sandbox, or right here where there is none. An error is that the
// sandbox could not be entered; then nothing was done.
func (s *server) within(p *sandbox.Policy, do func()) error {
	if p == nil {
		do()
		return nil
	}
	at, err := s.enter(*p)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	at.work <- func() {
		defer close(done)
		do()
	}
	<-done
	return nil
}

// enter returns the thread that is in the sandbox of p, making it where there is none.
func (s *server) enter(p sandbox.Policy) (*room, error) {
	key := p.Key()
	for _, at := range s.rooms {
		if at.key == key {
			return at, nil
		}
	}
	at := &room{key, make(chan func())}
	entered := make(chan error, 1)
	go func() {
		// Never unlocked, so that the thread ends with the goroutine and runs nothing else. The
		// runtime clones no other thread from one that is locked. Commands are killed when the
		// thread that forked them ends, so it stays.
		runtime.LockOSThread()
		err := sandbox.Enter(p)
		entered <- err
		if err != nil {
			return
		}
		for do := range at.work {
			do()
		}
	}()
	if err := <-entered; err != nil {
		return nil, err
	}
	if len(s.rooms) == maxRooms {
		close(s.rooms[0].work) // no command of its runs: there is one at a time
		s.rooms = s.rooms[1:]
	}
	s.rooms = append(s.rooms, at)
	return at, nil
}
