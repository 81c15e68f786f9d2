package service_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"pawl/internal/steward"
	"pawl/test/harness/world"
)

// A person who has only Temporal's UI submits a task there by starting the workflow Submit. On the steward's page they
// read what it asks, and send the answer that the page shows.
func TestTemporalUI_ATaskIsHandedInAndApprovedInABrowser(t *testing.T) {
	b := newBrowser(t)
	dir, err := os.MkdirTemp(world.Scratch, "ui")
	require.NoError(t, err)
	w := world.In(t, dir, world.Raises, map[string]string{"work/n": "10\n", "measure.sh": "cat work/n\n"})
	w.Loop = "shop"
	agent := doc{"command": []string{"sh", filepath.Join(w.Dir, "agent.sh")}, "env": doc{"WORLD": w.Dir}}
	charter, err := json.Marshal(doc{
		"kind": "steward", "name": w.Loop, "repo": doc{"path": w.Repo}, "tiers": []doc{{"tier": "T1", "words": []string{"delicate"}}},
		"defaults": doc{
			"scope": []string{"work/**"}, "test": doc{"command": "true"}, "verify": doc{"command": "sh measure.sh"}, "agent": agent,
			"approvals": doc{"tools": []string{"*"}, "diff": "auto"}, "sandbox": doc{"allow": []string{w.Dir}},
		},
	})
	require.NoError(t, err)
	w.Write("shop.json", string(charter))
	w.Up()
	var started struct{ UI string }
	world.Decode(t, w.Done("steward", "up", filepath.Join(w.Dir, "shop.json"), "--detach", "--json").Out, &started)
	workflows, _, _ := strings.Cut(started.UI, "/workflows/")

	b.does("the page that starts workflows is opened", chromedp.Navigate(workflows+"/workflows/start-workflow"))
	for field, text := range map[string]string{"workflowId": "hand-in", "taskQueue": "pawl", "workflowType": "Submit"} {
		b.does(field+" is typed", chromedp.SendKeys("#"+field, text, chromedp.ByQuery))
	}
	b.does("the task is typed", types(`[contenteditable=true]`, `{"steward": "shop", "task": {"title": "A delicate matter", "spec": {}}}`))
	b.does("the workflow is started", press(`button:enabled`, "Start Workflow"))
	var name string
	b.does("the task's name is read", chromedp.Navigate(workflows+"/workflows/hand-in"),
		chromedp.Poll(`document.body.innerText.match(/a-delicate-matter-[0-9a-f]{12}/)?.[0]`, &name))
	var task steward.Task
	w.Until("the task is there and asks", func() bool {
		s := w.Pawl("steward", "show", "shop", name, "--json")
		return s.Code == 0 && json.Unmarshal([]byte(s.Out), &task) == nil && task.WaitingFor != nil
	})

	var details string
	b.does("the steward's page is opened", chromedp.Navigate(started.UI), chromedp.Click(`//a[contains(., 'User Metadata')]`, chromedp.BySearch))
	b.does("the details are read", chromedp.Poll(`[...document.querySelectorAll('iframe')].filter(frame => frame.contentDocument?.readyState === 'complete')
		.map(frame => frame.contentDocument?.body?.innerText).find(text => text?.includes('"hash"'))`, &details))
	require.Contains(t, details, "A delicate matter")
	payload := regexp.MustCompile(`\{[^{}\n]*"hash"[^{}\n]*\}`).FindString(details)
	require.Contains(t, payload, task.Plan.Hash[:16], details)
	b.signals("approve", payload)
	w.Until("the task is done", func() bool {
		world.Decode(t, w.Done("steward", "show", "shop", name, "--json").Out, &task)
		return task.Outcome == steward.Done
	})
	require.NotEmpty(t, task.ApprovedBy, fmt.Sprint(task))
}
