package service_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"pawl/test/harness/world"
)

// browser is a headless Chromium without any data of the user.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// newBrowser opens a browser, which is closed at the test's end.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	world.Slow(t, "a browser")
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		world.Lacks(t, "there is no chromium")
	}
	// The browser's processes may still write after it is closed, so the folder is removed with the test run.
	profile, err := os.MkdirTemp(world.Scratch, "browser")
	require.NoError(t, err)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(profile), chromedp.WindowSize(1400, 1600),
		chromedp.WSURLReadTimeout(world.Patience))...)
	t.Cleanup(stop)
	// chromedp reports an event that it does not know yet as an error.
	ctx, end := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(end)
	ctx, late := context.WithTimeout(ctx, world.Patience)
	t.Cleanup(late)
	require.NoError(t, chromedp.Run(ctx), "%s opens", path)
	return &browser{t, ctx}
}

// does makes the browser do something. If that takes too long, it saves a picture of the page.
func (b *browser) does(what string, actions ...chromedp.Action) {
	b.t.Helper()
	step, stop := context.WithTimeout(b.ctx, world.Patience/6)
	defer stop()
	err := chromedp.Run(step, actions...)
	if err == nil {
		return
	}
	var picture []byte
	left := filepath.Join(os.TempDir(), "pawl-"+b.t.Name()+".png")
	if chromedp.Run(b.ctx, chromedp.FullScreenshot(&picture, 100)) == nil && os.WriteFile(left, picture, 0o600) == nil {
		b.t.Logf("what it shows is in %s", left)
	}
	require.NoError(b.t, err, what)
}

// press waits for a visible element that matches a selector and has exactly that text, and clicks it.
func press(selector, text string) chromedp.Action {
	return chromedp.Poll(fmt.Sprintf(`(() => {
		const it = [...document.querySelectorAll(%q)].find(e => e.textContent.trim() === %q && e.offsetParent);
		it && it.click();
		return !!it;
	})()`, selector, text), nil)
}

// types types a text into an editor. If the page is not ready and ignores it, types tries again.
func types(selector, text string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for typed := false; ; {
			if err := chromedp.Click(selector, chromedp.ByQuery).Do(ctx); err != nil {
				return err
			}
			if err := input.InsertText(text).Do(ctx); err != nil {
				return err
			}
			holds := fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%q) ?? false`, selector, text)
			if err := chromedp.Evaluate(holds, &typed).Do(ctx); err != nil || typed {
				return err
			}
		}
	})
}

// A person who has only Temporal's UI opens the loop's page, reads there what it waits for, and sends the answer that
// the page shows, with the page's own dialog.
func TestTemporalUI_AContractIsApprovedInABrowser(t *testing.T) {
	b := newBrowser(t)
	w := world.New(t, world.Raises)
	var started struct{ UI string }
	world.Decode(t, w.Done("start", "--json", w.SpecFile()).Out, &started)
	gate := w.Waits("waiting").Gate
	require.Equal(t, "contract", gate.Kind)

	var details string
	b.does("the page is opened", chromedp.Navigate(started.UI), chromedp.Click(`//a[contains(., 'User Metadata')]`, chromedp.BySearch))
	b.does("the details are read", chromedp.Poll(`[...document.querySelectorAll('iframe')].filter(frame => frame.contentDocument?.readyState === 'complete')
		.map(frame => frame.contentDocument?.body?.innerText).find(text => text?.includes('"hash"'))`, &details))
	payload := regexp.MustCompile(`\{[^{}\n]*"hash"[^{}\n]*\}`).FindString(details)
	require.Contains(t, payload, gate.Hash[:16], details)

	b.signals("approve", payload)
	w.Waits("completed")
	require.Equal(t, "11", w.Kept("work/n"))
}

// signals sends a signal with the dialog of the open page.
func (b *browser) signals(name, payload string) {
	b.t.Helper()
	b.does("the menu opens", press(`button`, "More Actions"))
	b.does("a signal is chosen in it", press(`[role=menuitem]`, "Send a Signal"))
	b.does("the list of signals opens", press(`dialog[open] [aria-controls^=signal-select]`, ""))
	b.does(name+" is chosen in it", press(`dialog[open] [role=option] span`, name))
	b.does("the payload is typed", types(`dialog[open] [contenteditable=true]`, payload))
	b.does("the dialog shows both", chromedp.Poll(fmt.Sprintf(`document.querySelector('dialog[open] #signal-select').value === %q &&
		document.querySelector('dialog[open] [contenteditable=true]').innerText.trim() === %q`, name, payload), nil))
	b.does("the signal is sent", press(`dialog[open] button:enabled`, "Submit"))
}
