package realrepos_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// TestRealFixesAreDeliveredAsAnOracleSays begins before a fix, with the tests that came with it. The agent makes the
// fix, or a part of it, or takes the tests away.
func TestRealFixesAreDeliveredAsAnOracleSays(t *testing.T) {
	for _, h := range histories(t) {
		for _, fix := range h.Fixes {
			for _, way := range []string{"right", "half", "cheat"} {
				t.Run(h.name()+"/"+fix+"/"+way, func(t *testing.T) { h.fix(t, fix, way) })
			}
		}
	}
}

func (h history) fix(t *testing.T, commit, way string) {
	w := world.New(t, `cp "$PAWL_PROMPT" "$WORLD/prompt-$PAWL_ROLE"; [ $PAWL_ROLE = writer ] || { echo "there is nothing else to do"; exit 0; }
D="$WORLD/deed"; `+does+`; cat "$D/says"`)
	theirs, parent := h.clone(w), commit+"^"
	tests, its := matching(h.Tests), regexp.MustCompile(h.Code)
	code := func(name string) bool { return !tests(name) && its.MatchString(name) }
	came := deed(filepath.Join(w.Dir, "came")).writes(t, theirs, parent, commit, "", tests)
	d, subject := deed(filepath.Join(w.Dir, "deed")), git(t, theirs, "log", "-1", "--format=%s", commit)
	switch way {
	case "right":
		d.writes(t, theirs, parent, commit, subject, code)
	case "half":
		d.writes(t, theirs, parent, half(t, theirs, parent, commit, code), subject, code)
	default:
		d.writes(t, theirs, commit, parent, subject, tests)
	}
	h.begins(w, theirs, parent, came)
	drafts(w, "--kind", "deliver", "--goal", git(t, theirs, "log", "-1", "--format=%B", commit))
	w.Set(h.Deliver).Set(world.Doc{"approvals": world.Doc{"diff": "auto", "plan": "auto"}, "limits": world.Doc{"iterations": 1, "fixAttempts": 1}})
	o, command := opens(w), field(w.Spec, "test", "command")
	w.Set(world.Doc{"verify": world.Doc{"command": command, "timeout": "10m"}}) // tests that failed before have to pass, too
	o.allowed = h.allows(w.Spec)
	said, passes := o.runs(command)
	require.False(t, passes, "the tests of the fix pass without it: %s", said)
	o.cleans()
	d.does(t, o.dir)
	want, tree := "completed", ""
	if o.touched() != "" {
		want = "blocked"
	} else if said, passes = o.runs(field(w.Spec, "guard", "command")); !passes {
		want = "blocked" // after the reworks, none of which changes anything
	} else {
		tree = git(t, o.dir, "write-tree")
		if said, passes = o.runs(command); !passes {
			want = "failed"
		}
	}

	c := w.Start("run", "--json", "--yes", w.SpecFile())
	var st world.State
	w.Until("it ends, or waits", func() bool {
		s := w.Pawl("show", "--json", w.Loop)
		st = world.State{}
		return s.Code == 0 && json.Unmarshal([]byte(s.Out), &st) == nil && slices.Contains([]string{"completed", "failed", "blocked"}, st.Status) || ended(c) && s.Code != 0
	})
	shown := w.Pawl("show", w.Loop).Out
	if st.Status == "blocked" {
		w.Done("halt", w.Loop)
	}
	run := c.Wait()
	if out := os.Getenv("PAWL_REPLAY_OUT"); out != "" {
		for name, text := range map[string]string{
			"writer": w.Read("prompt-writer"), "fixer": w.Read("prompt-fixer"), "show": shown, "log": w.Pawl("log", w.Loop).Out, "run": run.Out + run.Err, "spec": w.Read("spec.yaml"), "oracle": said,
		} {
			require.NoError(t, os.WriteFile(filepath.Join(out, strings.Join([]string{h.name(), commit, way, name}, "-")), []byte(text), 0o644))
		}
	}
	require.Equal(t, want, st.Status, "%s%s\nthe oracle's tests:\n%s", run.Out, run.Err, said)
	if want == "completed" {
		require.Equal(t, tree, w.Git("rev-parse", "refs/heads/pawl/"+w.Loop+"^{tree}"), "the files that were delivered")
	}
	t.Logf("%s %s, %s: %s", h.name(), commit, way, want)
}

// ended reports whether a command has ended.
func ended(c *world.Command) bool {
	select {
	case <-c.Gone:
		return true
	default:
		return false
	}
}

// half returns a commit with the first part of a change, or without its last line if the change has only one part.
func half(t *testing.T, theirs, from, to string, which func(name string) bool) string {
	patch := git(t, theirs, append([]string{"diff", "--no-renames", from, to, "--"}, differing(t, theirs, which, from, to)...)...) + "\n"
	if parts := regexp.MustCompile(`(?m)^(?:@@ |diff --git )`).FindAllStringIndex(patch, 3); len(parts) > 2 {
		patch = patch[:parts[2][0]]
	} else {
		lines := strings.SplitAfter(patch, "\n")
		for i := len(lines) - 1; i >= 0; i-- {
			if strings.HasPrefix(lines[i], "+") && strings.TrimSpace(lines[i]) != "+" {
				patch = strings.Join(slices.Delete(lines, i, i+1), "")
				break
			}
		}
	}
	git(t, theirs, "checkout", "--quiet", "--force", "--detach", from)
	c := exec.Command("git", "-C", theirs, "apply", "--recount", "--index")
	c.Stdin = strings.NewReader(patch)
	out, err := c.CombinedOutput()
	require.NoError(t, err, string(out))
	git(t, theirs, "commit", "--quiet", "--allow-empty", "--message", "half")
	return git(t, theirs, "rev-parse", "HEAD")
}
