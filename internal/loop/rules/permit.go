package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

// Needs returns the permissions that a role needs to be called in a phase (E1).
func Needs(name string) []string {
	if kind.Edits(phase.Phase(name)) {
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

// Unpermitted says which roles a spec takes a permission from that every call of the role needs.
func Unpermitted(s spec.Spec) (lines []string) {
	for _, role := range slices.Sorted(maps.Keys(s.Permissions)) {
		lacks := slices.DeleteFunc(slices.Clone(spec.Spec{}.Permitted(role)), func(p string) bool { return slices.Contains(s.Permitted(role), p) })
		if len(lacks) > 0 {
			lines = append(lines, fmt.Sprintf("permissions.%s lacks %s, so the loop ends (%s) when it would call that role", role, strings.Join(lacks, " and "), fault.PermissionDenied))
		}
	}
	return lines
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
