package govern

import (
	"slices"

	"pawl/internal/fault"
	"pawl/internal/kind"
	"pawl/internal/phase"
	"pawl/internal/spec"
)

// Needs returns the permissions that a role needs to be called in a phase (E1).
func Needs(at string) []string {
	if kind.Edits(phase.Phase(at)) {
		return []string{spec.CanExecuteTasks, spec.CanEditSource}
	}
	return []string{spec.CanExecuteTasks}
}

// Permit returns nil if a role has a permission, or a fault PERMISSION_DENIED that names both.
func Permit(s spec.Spec, role, permission string) error {
	if role == "" {
		return fault.New(fault.PermissionDenied, "no role was given, so %s is not permitted", permission)
	}
	if !slices.Contains(s.Permitted(role), permission) {
		return fault.New(fault.PermissionDenied, "the role %s is not permitted %s", role, permission)
	}
	return nil
}

// PermitPhase is Permit for all permissions that a phase needs. Every agent call has to pass it.
func PermitPhase(s spec.Spec, role, phase string) error {
	for _, permission := range Needs(phase) {
		if err := Permit(s, role, permission); err != nil {
			return err
		}
	}
	return nil
}
