package workflows

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"pawl/internal/govern"
	"pawl/internal/launch"
	"pawl/internal/loop"
	"pawl/workflows/display"
)

// checkMessage decodes a message and checks what it would do. It changes nothing.
func (r *run) checkMessage(name string, payload []byte) (govern.Reply, error) {
	m, err := loop.DecodeMessage(payload)
	if err != nil {
		return govern.Reply{}, err
	}
	return govern.Answer(r.State(), r.spec, name, m)
}

func (r *run) handleQueries(ctx workflow.Context) error {
	return errors.Join(
		display.Answer(ctx, "state", "The loop's state", func() (loop.State, error) { return r.State(), nil }),
		display.Answer(ctx, "iterations", "The last iterations", func() (launch.IterationsView, error) {
			s := r.State()
			return launch.IterationsView{Iterations: s.Iterations, Count: s.KeptCount + s.Discarded, Ledger: s.Ledger}, nil
		}),
		display.AnswerEvents(ctx, r.Journal),
		display.Answer(ctx, "gate", "What the loop waits for, if anything", func() (*loop.Gate, error) { return r.State().Gate, nil }),
		display.Answer(ctx, "contract", "What was or is to be approved", func() (launch.ContractView, error) {
			return launch.ContractView{
				Contract: r.State().Contract, Spec: r.spec, Baseline: r.State().Baseline,
				InScope: r.host.Opened.InScope, Protections: govern.Protected(r.host.Opened.Protections), Environment: r.host.Opened.Environment,
			}, nil
		}),
	)
}
