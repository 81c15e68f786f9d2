package charter

import (
	"time"

	"pawl/internal/kind"
	"pawl/internal/spec"
)

// Defaults returns a charter with only the defaults, with the limits of the source (S10). Required keys are empty.
func Defaults() Charter {
	return Charter{
		Kind:  kind.Steward.Name,
		Repo:  spec.Repo{Path: "."},
		Agent: spec.Agent{Use: spec.UseCommand},
		Limits: Limits{
			Actions:    100,
			NoProgress: 10,
			SameResult: 3,
			SameError:  5,
			Executing:  spec.Duration(time.Hour),
			Retries:    3,
			Waiting:    spec.Duration(24 * time.Hour),
			Parallel:   1,
			Queue:      1000,
		},
		ValidateEvery: spec.Duration(30 * time.Minute),
		Mode:          spec.ModeMission,
	}
}
