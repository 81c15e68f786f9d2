package calls

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pawl/activities/hosted"
	"pawl/internal/act"
	"pawl/internal/govern"
	"pawl/internal/outcome"
	"pawl/internal/secret"
	"pawl/internal/spec"
)

// doubtSuccess turns the success of an agent without a stream into a refusal of its provider, if the program printed one
// as its last words and changed nothing: many scripts drop the exit code of the program that they call.
func (e *Exchange) doubtSuccess(ctx context.Context, ws *hosted.Workspace, in act.Call, out *act.Called, printed string) error {
	if !in.Doubt || e.call != nil {
		return nil
	}
	if out.Class != outcome.Done || hasOpinion(out) {
		return nil
	}

	refusal := e.printedRefusal(out, printed)
	if refusal == nil {
		return nil
	}

	if slices.Contains(govern.Needs(in.Phase), spec.CanEditSource) {
		change, err := ws.Desk.Stage(ctx, in.Head)
		ws.Torn(ws.Desk)
		if err != nil {
			return fmt.Errorf("looking for changes by the %s: %w", in.Role, err)
		}
		if !change.Empty() {
			return nil
		}
	}

	e.refuse(out, refusal, time.Now())
	out.Refused.Printed = true
	return nil
}

func hasOpinion(out *act.Called) bool { return out.Opinion != nil && out.Opinion.Why == "" }

// printedRefusal returns the refusal in the first or last line of what a program printed, in its description, or in the
// last line of its stderr; nil if there is none.
func (e *Exchange) printedRefusal(out *act.Called, printed string) *outcome.Refusal {
	stdout, _ := hosted.ReadTail(filepath.Join(out.Log, "stdout"), hosted.TailLength)
	lines := []string{
		firstLine(printed), lastLine(secret.Redact(strings.ToValidUTF8(string(stdout), "?"))), out.Description, lastLine(complaint(out)),
	}
	for _, line := range lines {
		if refusal := cmp.Or(outcome.InOutput(line), outcome.Unreached(line, e.models)); refusal != nil {
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
