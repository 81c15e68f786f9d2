package steward

import (
	"context"

	"pawl/internal/steward/task"
)

// LookTwice returns what a validation finds with this check.
func LookTwice(look func() []task.Drift) ([]task.Drift, error) {
	var v validation
	err := v.twice(context.Background(), func(context.Context) error {
		v.out.Drift = append(v.out.Drift, look()...)
		return nil
	})
	return v.out.Drift, err
}
