package charter

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/task"
)

// Caps are the values that a steward sets in the spec of a step's loop, whatever plan and charter say.
type Caps struct {
	Loop       string          // its workflow ID
	Task       string          // the task's ID
	Goal       string          // the goal if the step has none
	Plan       string          // the SHA-256 of the task's PLAN.md
	ApprovedBy string          // who approved the plan, "" if it needs no approval
	From       string          // the branch from which the loop starts, "" for Onto
	Base       string          // the commit from which the task's work starts, "" for the first step
	Onto       string          // the branch that the task's work is for
	Last       bool            // its proposal is the task's proposal
	CostUSD    *metric.Decimal // the most that it may cost, nil for no limit
}

// Loop returns the spec of a step's loop: the charter's defaults, over them the values of the step, over those the
// values of the steward. The error is spec.Problems, or says which key a step may not set.
func (c Charter) Loop(step task.Step, caps Caps) (spec.Spec, error) {
	doc, err := fragment(c.Defaults)
	if err != nil {
		return spec.Spec{}, fmt.Errorf("defaults: %w", err)
	}
	values, err := fragment(step.Spec)
	if err != nil {
		return spec.Spec{}, fmt.Errorf("the step %s: spec: %w", step.ID, err)
	}
	for _, key := range Starters {
		if _, given := values[key]; given {
			return spec.Spec{}, fmt.Errorf("the step %s sets %s, but only its steward may set that", step.ID, key)
		}
	}
	if kind, given := values["kind"]; given && kind != step.Kind {
		return spec.Spec{}, fmt.Errorf("the step %s is of kind %s, but its spec says %v", step.ID, step.Kind, kind)
	}
	if part, _ := values["approvals"].(map[string]any); part["plan"] != nil {
		return spec.Spec{}, fmt.Errorf("the step %s sets approvals.plan, but people approve the plan of its task instead", step.ID)
	}
	doc = merge(doc, values)
	doc["name"], doc["kind"] = caps.Loop, step.Kind
	if doc["goal"] == nil && caps.Goal != "" {
		doc["goal"] = caps.Goal
	}
	approvals := merge(object(doc["approvals"]), map[string]any{"plan": spec.Auto})
	if !caps.Last {
		approvals["diff"] = spec.Auto
	}
	doc["approvals"] = approvals
	session := map[string]any{spec.SessionSteward: c.Name, spec.SessionTask: caps.Task, spec.SessionPlan: caps.Plan}
	for key, value := range map[string]string{spec.SessionApprovedBy: caps.ApprovedBy, spec.SessionBase: caps.Base, spec.SessionOnto: caps.Onto} {
		if value != "" {
			session[key] = value
		}
	}
	doc["session"] = session
	s, err := spec.FromMap(doc)
	if err != nil {
		return spec.Spec{}, err
	}
	s.Repo = c.Repo
	s.Repo.Base = cmp.Or(caps.From, caps.Onto, c.Repo.Base) // never the branch that happens to be checked out
	if limit := caps.CostUSD; limit != nil && (s.Limits.CostUSD == nil || s.Limits.CostUSD.Cmp(*limit) > 0) {
		s.Limits.CostUSD = limit
	}
	return s, s.ValidateInput()
}

// fragment reads a part of a spec. The result is empty if there is none.
func fragment(doc json.RawMessage) (map[string]any, error) {
	part := map[string]any{}
	if len(doc) == 0 {
		return part, nil
	}
	return part, json.Unmarshal(doc, &part)
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// merge returns a document with another one over it: objects are merged, anything else is replaced.
func merge(base, overlay map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, base)
	for key, value := range overlay {
		if part, ok := value.(map[string]any); ok {
			value = merge(object(out[key]), part)
		}
		out[key] = value
	}
	return out
}

// Scope returns the globs that the loop of a step may change.
func (c Charter) Scope(step task.Step) (globs []string) {
	for _, doc := range []json.RawMessage{step.Spec, c.Defaults} {
		var part struct {
			Scope []string `json:"scope"`
		}
		if json.Unmarshal(doc, &part) == nil && part.Scope != nil {
			return part.Scope
		}
	}
	return nil
}
