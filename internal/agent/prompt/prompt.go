// Package prompt has what pawl tells a coding agent and what it gets back: the prompt, the environment and the result
// file of `use: command`. It starts no process (the package supervisor does), and it does not believe what an agent says
// about its own success. Start at Brief.
package prompt

import (
	"cmp"
	"fmt"
	"strings"

	"pawl/internal/lib/list"
	"pawl/internal/lib/text/markdown"
	"pawl/internal/loop"
	"pawl/internal/loop/api"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
	"pawl/internal/spec/phase"
)

// Brief is everything that an agent is told in one call. Every part has a limit, so that iteration 1,000 costs as
// much as iteration 20.
type Brief struct {
	api.Call // the call; its Evidence is the end of the output that shows why the last attempt was undone
	Kind     kind.Kind
	Spec     spec.Spec
	State    loop.State
	Sealed   []string
	Reserved []string // names that no new file may have
	Lines    []string // files, each with directives that may not change
	Log      []string // the last lines of the history
	LastDiff string   // the last change
	Plan     string   // the plan, approved with the contract
	Noise    string   // how much the metric varies, and which improvement counts; "" if it does not vary
	Diff     string   // the diff of the proposal
	Criteria []string // the criteria that the reviewer ticks off
	// Instructions is the repository's file with instructions for agents, if the program does not read it by itself.
	Instructions Text
	// Streams says that the agent answers by its output, and need not write a file.
	Streams bool
}

// The limits of the parts, in bytes. Their sum limits the prompt, apart from the goal.
const (
	boundGoal     = 16 << 10
	boundList     = 2 << 10
	boundEvidence = 12 << 10
	boundPlan     = 16 << 10
	// BoundProposal is how many bytes of a proposal a reviewer is shown. The whole proposal is on the desk.
	BoundProposal = 64 << 10
	boundDiff     = 6 << 10
	boundAnalysis = 4 << 10
	// boundInstructions is how many bytes of a repository's instructions are in every call.
	boundInstructions = 16 << 10
	boundLine         = 160
	logLines          = 20
	resultRows        = 12
)

// Text returns the prompt.
func (b Brief) Text() string {
	var w strings.Builder
	section := sections(&w)
	section("Goal", loop.Clip(b.Spec.Goal, boundGoal))
	section("The plan", loop.Clip(b.Plan, boundPlan))
	section("Your task now", b.task())
	section("What the other agents try", b.beside())
	section("Where you start from", b.branch())
	section(cmp.Or(b.Kind.Tasks[phase.Phase(b.Phase)].Repair, "Why you are asked again"), b.repair())
	section("Acceptance criteria", b.criteria())
	section("What the commands say", b.judged())
	section("The proposal", markdown.Fenced("diff", loop.Clip(b.Diff, BoundProposal)))
	section("Guidance from a person", b.guidance())
	section("Rules", b.rules())
	section("The repository's instructions for agents ("+b.Instructions.Name+")", loop.Clip(b.Instructions.Content, boundInstructions))
	section("Where the loop stands", b.say(b.Kind.Standing))
	section("Last results", b.results())
	section("What the results show", b.trend()+b.State.Analysis.Markdown(boundAnalysis)+b.strategy())
	section("History", b.history())
	section("The last change", markdown.Fenced("diff", loop.Clip(b.LastDiff, boundDiff)))
	return w.String()
}

// sections returns a function that writes a section of a prompt, nothing if the body is blank.
func sections(w *strings.Builder) func(title, body string) {
	return func(title, body string) {
		if strings.TrimSpace(body) != "" {
			fmt.Fprintf(w, "## %s\n\n%s\n\n", title, strings.TrimRight(body, "\n"))
		}
	}
}

// beside returns the text for an agent that makes one of several candidates.
func (b Brief) beside() string {
	if b.Of == 0 {
		return ""
	}
	lines := []string{fmt.Sprintf("You are agent %d of %d. All start from the same code, each in a folder of its own, and each change is measured by itself. ", b.Candidate, b.Of) +
		"Do something different from the others, in other places of the code if you can: two changes to the same lines can't both be kept."}
	for _, idea := range b.Beside {
		lines = append(lines, "- Another agent works on this: "+loop.Clip(strings.ReplaceAll(idea, "\n", " "), boundLine))
	}
	if len(b.Beside) == 0 {
		lines = append(lines, "The others have not said yet what they try.")
	}
	return strings.Join(lines, "\n")
}

// branch returns the text for an agent if the loop continues from an earlier commit than its head.
func (b Brief) branch() string {
	of := b.State.Exploring()
	if of == nil {
		return ""
	}
	from, _ := b.State.Backtrack.Node(of.From)
	lines := []string{fmt.Sprintf("The last changes did not improve the metric, which is at %s. So the loop continues from an earlier change, that of iteration %d: %s. ", of.Best, of.From, loop.Clip(from.Description, boundLine)) +
		fmt.Sprintf("Your files are those of that change, with what was kept on this branch since. The branch replaces the loop's head only if it becomes better than %s.", of.Best)}
	if without := b.State.Backtrack.Without(*of); len(without) > 0 {
		lines = append(lines, "These later changes are not in your files. Find another way: making them again leads back to where the loop was:")
		for _, n := range without[max(0, len(without)-resultRows):] {
			lines = append(lines, "- "+loop.Clip(n.Description, boundLine))
		}
	}
	return strings.Join(lines, "\n")
}

// criteria returns the criteria that the reviewer ticks off, each by its number and with evidence.
func (b Brief) criteria() string {
	if len(b.Criteria) == 0 || b.Proposal == nil {
		return ""
	}
	lines := []string{"An approval counts only with a line for each of them, such as `- [x] 1: TestParse shows it` or `- [ ] 2: nothing shows it`:", ""}
	for i, c := range b.Criteria {
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, c))
	}
	return strings.Join(lines, "\n")
}

// judged returns the results of the commands for the proposal under review.
func (b Brief) judged() string {
	if b.Proposal == nil {
		return ""
	}
	var lines []string
	for _, j := range []struct {
		name, command string
		*loop.Judgement
	}{
		{"guard", b.Spec.Guard.Command, b.State.LastGuard}, {"tests", b.Spec.Test.Command, b.State.LastTest}, {"verify", b.Spec.Verify.Command, b.State.LastVerify},
	} {
		if j.Judgement == nil || j.command == "" {
			continue
		}
		line := fmt.Sprintf("- %s (`%s`): %s", j.name, loop.Clip(j.command, 512), verdicts[j.Passed])
		if j.Reason != "" {
			line += ": " + loop.Clip(j.Reason, 500)
		}
		if t := j.Tests; t != nil {
			line += fmt.Sprintf("; %d passed, %d failed, %d skipped", t.Passed, t.Failed, t.Skipped)
			for _, list := range []struct {
				what  string
				tests []string
			}{{"failing as before the first change", t.Known}, {"failed, then passed unchanged", t.Flaky}, {"failing", t.Failing}} {
				if len(list.tests) > 0 {
					line += "; " + list.what + ": " + loop.Clip(strings.Join(list.tests, ", "), boundList)
				}
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

var verdicts = map[bool]string{true: "passed", false: "failed"}

func (b Brief) guidance() string {
	lines := list.Map(b.Guidance, func(n loop.Note) string { return "- " + loop.Clip(strings.ReplaceAll(n.Text, "\n", " "), 1024) })
	return strings.Join(lines, "\n")
}

func (b Brief) rules() string {
	lines := []string{"- Change only files that match: " + loop.Clip(strings.Join(b.Spec.Scope, ", "), boundList)}
	if len(b.Sealed) > 0 {
		lines = append(lines, "- Never change these files, because they judge your work: "+loop.Clip(strings.Join(b.Sealed, ", "), boundList))
	}
	if len(b.Lines) > 0 {
		lines = append(lines, "- Never change these lines, because they decide how your work is judged: "+loop.Clip(strings.Join(b.Lines, ", "), boundList))
	}
	switch {
	case b.Spec.NewFiles == spec.Deny:
		lines = append(lines, "- Do not add files.")
	case len(b.Reserved) > 0:
		lines = append(lines, "- Never add files with these names, because they would change how your work is judged: "+loop.Clip(strings.Join(b.Reserved, ", "), boundList))
	}
	if known := b.State.KnownTests; known != nil && known.Tests != nil && len(known.Tests.Failing) > 0 {
		them := "them"
		if known.Tests.Failed == 1 {
			them = "it"
		}
		lines = append(lines, fmt.Sprintf("- %s failed before the first change, and need not pass unless the goal is about %s: %s",
			metric.Counted(known.Tests.Failed, "test"), them, loop.Clip(strings.Join(known.Tests.Failing, ", "), boundList)))
	}
	if guard := b.Spec.Guard.Command; guard != "" {
		lines = append(lines, "- This command must keep passing: `"+loop.Clip(guard, 512)+"`")
	}
	return strings.Join(lines, "\n")
}

func (b Brief) results() string {
	rows := b.State.Iterations
	rows = rows[max(0, len(rows)-resultRows):]
	var lines []string
	if len(rows) > 0 {
		lines = append(lines, "All results so far are in the file `"+metric.Results+"` in this folder, which is not part of your change. The last ones:", "")
	}
	for _, r := range rows {
		outcome := "discarded"
		if r.Kept {
			outcome = "KEPT"
		}
		if r.Reason != "" {
			outcome += " (" + r.Reason + ")"
		}
		if r.Note != "" {
			outcome += " (" + r.Note + ")"
		}
		if r.Metric != nil {
			outcome = "metric " + r.Metric.String() + ", " + outcome
		}
		lines = append(lines, loop.Clip(fmt.Sprintf("- %d: %s: %s", r.N, outcome, r.Description), 2*boundLine))
	}
	return strings.Join(lines, "\n")
}

// trend returns the trend of the metric (P1), if the loop has one.
func (b Brief) trend() string {
	if !b.Kind.Reference {
		return ""
	}
	return "- " + map[string]string{
		metric.Improving:   "The metric is improving.",
		metric.Plateau:     "The metric has reached a plateau: the last changes did not improve it.",
		metric.Oscillating: "The metric oscillates: it goes up and down without progress.",
		metric.Unknown:     "There are too few measurements to see a trend in the metric.",
	}[b.State.Analysis.Trend(b.Spec.Verify.Direction)] + "\n"
}

// pivotAfter is how many discards in a row in one area ask for another area (P2).
const pivotAfter = 3

func (b Brief) strategy() string {
	var w strings.Builder
	stuck := b.State.Analysis.Stuck(pivotAfter)
	for _, a := range stuck[:min(len(stuck), 5)] {
		fmt.Fprintf(&w, "\n- %d discards in a row in %s: choose another file or another technique.", a.DiscardsInARow, loop.Clip(a.Area, boundLine))
	}
	shifts := b.Spec.Limits.ShiftAfter // after this many discards in a row the strategy shifts, again and again
	if n := b.State.DiscardsInARow; b.State.Strategy > 0 && shifts > 0 && n >= shifts {
		fmt.Fprintf(&w, "\n- The strategy has shifted after %s in a row (now %d): work in another area of the scope, with another technique.", metric.Counted(n-n%shifts, "discard"), n)
	}
	return w.String()
}

func (b Brief) history() string {
	lines := list.Map(b.Log[:min(len(b.Log), logLines)], func(l string) string { return loop.Clip(l, boundLine) })
	return markdown.Fenced("", strings.Join(lines, "\n"))
}

// tail returns the end of text, where failures are.
func tail(text string, n int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= n {
		return text
	}
	text = text[len(text)-n:]
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return "…\n" + text
}
