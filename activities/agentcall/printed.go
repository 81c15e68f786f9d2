package agentcall

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/activities/workspace"
	"pawl/internal/lib/secretscan"
	"pawl/internal/loop/api"
	"pawl/internal/loop/result"
	"pawl/internal/loop/rules"
	"pawl/internal/spec"
)

// doubtSuccess turns the success of an agent without a stream into a refusal of its provider, if the program printed one
// as its last words and changed nothing: many scripts drop the exit code of the program that they call.
func (e *Exchange) doubtSuccess(ctx context.Context, ws *workspace.Workspace, input api.Call, out *api.Called, printed string) error {
	if !input.Doubt || e.call != nil {
		return nil
	}
	if out.Class != result.Done || hasOpinion(out) {
		return nil
	}

	refusal := e.printedRefusal(out, printed)
	if refusal == nil {
		return nil
	}

	if slices.Contains(rules.Needs(input.Phase), spec.CanEditSource) {
		change, err := ws.Desk.Stage(ctx, input.Head)
		ws.Torn(ws.Desk)
		if err != nil {
			return fmt.Errorf("looking for changes by the %s: %w", input.Role, err)
		}
		if !change.Empty() {
			return nil
		}
	}

	e.refuse(out, refusal, time.Now())
	out.Refused.Printed = true
	return nil
}

func hasOpinion(out *api.Called) bool { return out.Opinion != nil && out.Opinion.Why == "" }

// printedRefusal returns the refusal in the first or last line of what a program printed, in its description, or in the
// last line of its stderr; nil if there is none.
func (e *Exchange) printedRefusal(out *api.Called, printed string) *result.Refusal {
	stdout, _ := workspace.ReadTail(filepath.Join(out.Log, "stdout"), workspace.TailLength)
	lines := []string{
		firstLine(printed), lastLine(secretscan.Redact(strings.ToValidUTF8(string(stdout), "?"))), out.Description, lastLine(complaint(out)),
	}
	for _, line := range lines {
		if refusal := cmp.Or(result.InOutput(line), result.Unreached(line, e.models)); refusal != nil {
			return refusal
		}
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
