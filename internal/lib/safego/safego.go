// Package safego turns a panic in a goroutine into an error of the work that the goroutine does. Otherwise it would end
// the process, with all loops in it. Start at Caught.
package safego

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// Caught calls do and returns its error, or its panic as an error that says where it was.
func Caught(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

// Group is an errgroup.Group for which a panic is an error.
type Group struct{ *errgroup.Group }

// WithContext returns a group, and a context that ends with the group's first error.
func WithContext(ctx context.Context) (Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	return Group{g}, ctx
}

// Go calls do in a goroutine.
func (g Group) Go(do func() error) {
	g.Group.Go(func() error { return Caught(do) })
}
