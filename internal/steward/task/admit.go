package task

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"pawl/internal/fault"
	"pawl/internal/lib/lazyregexp"
	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/spec/kind"
)

// Limits of a task, in bytes unless a comment says something else.
const (
	MaxTask     = 512 << 10
	MaxPriority = 1000 // and its negative is the least
	maxID       = 60
	maxBody     = 64 << 10
	maxLine     = 200 // of a title, a milestone, a dedupe key and a source
	maxAfter    = 100 // tasks in after
)

var (
	taskID = lazyregexp.New(`^[a-z0-9][a-z0-9-]*$`)
	ofSpec = lazyregexp.New(`^((plan|steps)\[[0-9]+\]\.)?spec\.`)
)

// DecodeTask reads a task from one JSON object, the format of files, messages and workflow input. It refuses unknown
// keys. specs, if given, checks the fragments of specs in the task. The error is a fault INVALID_MESSAGE that lists
// all problems. The returned task is not admitted yet.
func DecodeTask(doc []byte, specs func(key string, t Task) spec.Problems) (t Task, err error) {
	if len(doc) > MaxTask {
		return Task{}, fault.New(fault.InvalidMessage, "the task is %d bytes long; at most %d are allowed", len(doc), MaxTask)
	}
	t, err = spec.Fill(doc, Task{}, func(t *Task) spec.Problems {
		found := t.problems()
		if specs != nil {
			found = append(found, specs("", *t)...)
		}
		return found
	})
	if err != nil {
		return Task{}, refused(err)
	}
	return t, nil
}

// Admit returns a task as the queue keeps it: with an ID and a title, and its steps InOrder. exists reports whether
// the steward has, or has had, a task with an ID. An ID that Admit makes from the title may be known already; the
// steward then makes it unique. The error is a fault INVALID_MESSAGE that lists all problems.
func Admit(t Task, exists func(id string) bool) (Task, error) {
	c := spec.Checker{Problems: t.problems()}
	for i, id := range t.After {
		if id == t.ID {
			c.Add(fmt.Sprintf("after[%d]", i), "is the task itself", "a task that has to be done before it")
		} else if !exists(id) {
			c.Add(fmt.Sprintf("after[%d]", i), "is "+spec.Show(id)+", and there is no such task", "the ID of a task that was submitted before this one")
		}
	}
	if len(c.Problems) > 0 {
		return Task{}, refused(c.Problems.Err())
	}
	t.Title = t.title()
	if t.ID == "" {
		t.ID = derived(t.Title)
	}
	t.Title = cmp.Or(t.Title, t.ID)
	t.Plan = InOrder(t.Plan)
	if t.Steps() == nil {
		return t, nil
	}
	file, err := RenderPlan(t)
	if err == nil {
		_, err = ParsePlan(file) // a file that can't be read can't be approved either
	}
	if err != nil {
		return Task{}, refused(err)
	}
	return t, nil
}

// IDOf returns an ID for a task without one. It comes from the title and the key, and differs from that of every
// other key. So the submitter knows the ID before the steward has accepted the task.
func IDOf(t Task, key string) string {
	const digits = 12 // enough for a million tasks of one title: equal IDs would be one task
	sum := sha256.Sum256([]byte(key))
	name := derived(t.title())
	return strings.TrimRight(name[:min(len(name), maxID-digits-1)], "-") + "-" + hex.EncodeToString(sum[:])[:digits]
}

// title returns the task's title, or else the beginning of its body.
func (t *Task) title() string {
	if title := cleanLine(t.Title); title != "" {
		return title
	}
	return cleanLine(strings.TrimLeft(strings.TrimSpace(t.Body), "# "))
}

// Check returns the problems of a task inside a spec, at that key; "" for a document of its own.
func (t Task) Check(key string) spec.Problems {
	problems := t.problems()
	for i, p := range problems {
		if problems[i].Key = spec.Join(key, p.Key); p.Key == "" {
			problems[i].Key = key
		}
	}
	return problems
}

// problems returns the problems of a task by itself.
func (t *Task) problems() spec.Problems {
	var c spec.Checker
	if t.ID != "" && (len(t.ID) > maxID || !taskID().MatchString(t.ID)) {
		c.Add("id", "is "+spec.Show(t.ID), fmt.Sprintf("at most %d of a to z, 0 to 9 and the hyphen, such as %q", maxID, derived(t.ID)))
	}
	checkLine(&c, "title", t.Title)
	checkSize(&c, "body", len(t.Body), maxBody)
	if strings.ContainsRune(t.Body, 0) {
		c.Add("body", "contains a NUL byte", "text in Markdown")
	}
	checkSize(&c, "spec", len(t.Spec), maxFragment)
	switch body, fragment, plan := strings.TrimSpace(t.Body) != "", t.Spec != nil, t.Plan != nil; {
	case !body && !fragment && !plan && strings.TrimSpace(t.Title) == "":
		c.Add("body", "is missing, and so are title, spec and plan", "what is wanted, in Markdown; or a spec, or a plan")
	case body && fragment:
		c.Add("spec", "is given beside body", "one of the two; what is wanted of a loop is spec.goal")
	case fragment && plan:
		c.Add("spec", "is given beside plan", "one of the two; each step of a plan has a spec of its own")
	}
	if t.Plan != nil {
		checkSteps(&c, "plan", InOrder(t.Plan))
	}
	if t.Spec != nil {
		c.OneOf("spec.kind", t.Steps()[0].Kind, kind.Loops())
	}
	if t.Priority > MaxPriority || t.Priority < -MaxPriority {
		c.Add("priority", fmt.Sprintf("is %d", t.Priority), fmt.Sprintf("from %d to %d", -MaxPriority, MaxPriority))
	}
	if len(t.After) > maxAfter {
		c.Add("after", fmt.Sprintf("names %d tasks", len(t.After)), fmt.Sprintf("at most %d", maxAfter))
	}
	checkTier(&c, t.Tier)
	checkLine(&c, "source", t.Source)
	checkLine(&c, "dedupe", t.Dedupe)
	return c.Problems
}

func checkTier(c *spec.Checker, t Tier) {
	if t != "" {
		c.OneOf("tier", string(t), []string{string(T0), string(T1), string(T2), string(T3)})
	}
}

// derived makes an ID from a text: "Fix the login (#12)" becomes fix-the-login-12.
func derived(title string) string {
	words := strings.FieldsFunc(strings.ToLower(title), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	id := ""
	for _, word := range words {
		if id != "" && len(id)+1+len(word) > maxID {
			break
		}
		id = strings.TrimPrefix(id+"-"+word, "-")
	}
	if id == "" {
		return "task"
	}
	return id[:min(len(id), maxID)]
}

// cleanLine returns a text as it is shown on one line.
func cleanLine(text string) string { return metric.Description(text) }

func refused(err error) error {
	if problems := (spec.Problems)(nil); errors.As(err, &problems) {
		err = Called("task", problems).Capped()
	}
	return fault.New(fault.InvalidMessage, "the task is not valid:\n%v", err).Advise("Correct what is named and submit it again.")
}

// Called replaces "of a spec" by the document's name in problems, except in problems of specs inside the document.
func Called(document string, problems spec.Problems) spec.Problems {
	for i, p := range problems {
		if ofSpec().MatchString(p.Key) {
			continue
		}
		problems[i].What = strings.ReplaceAll(problems[i].What, "of a spec", "of a "+document)
		problems[i].Want = strings.ReplaceAll(problems[i].Want, "of a spec", "of a "+document)
	}
	return problems
}
