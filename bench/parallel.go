package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// adder is an agent that takes two seconds to change a file of its own. Every third change raises the sum.
const adder = `cat >/dev/null; i=$PAWL_ITERATION; sleep 2
if [ $((i % 3)) = 0 ]; then echo $i > f$i; echo "add $i"; else echo -$i > f$i; echo "take $i away"; fi`

// parallel compares 24 candidates one after the other with eight at once. The agent takes 2 s and verify 0.1 s. The
// verdicts must be the same.
func (b *bench) parallel() error {
	const candidates = 24
	took := map[int]time.Duration{}
	var verdicts []string
	for _, at := range []int{1, 8} {
		doc := limits(candidates)
		doc["limits"].(map[string]any)["parallel"] = at
		doc["agent"], doc["newFiles"], doc["scope"] = map[string]any{"command": adder}, "allow", []string{"*"}
		doc["verify"] = map[string]any{"command": "sleep 0.1; cat n f* 2>/dev/null | awk '{ s += $1 } END { print s }'"}
		p, err := b.place(doc)
		if err != nil {
			return err
		}
		if out, err := b.pawl(p, "run", "--json", p.spec).CombinedOutput(); err != nil {
			return fmt.Errorf("pawl run: %w\n%s", err, out)
		}
		if took[at], err = b.span(p); err != nil {
			return err
		}
		got, err := b.verdicts(p)
		if err != nil {
			return err
		}
		if verdicts != nil && !slices.Equal(verdicts, got) {
			return fmt.Errorf("%d at once come to other verdicts:\n%s\n\n%s", at, strings.Join(verdicts, "\n"), strings.Join(got, "\n"))
		}
		verdicts = got
	}
	fmt.Printf("| %d candidates, agent 2 s, verify 0.1 s, eight at once against one after the other; the same verdicts | %.1f× sooner (%.1f s against %.1f s) |\n",
		candidates, took[1].Seconds()/took[8].Seconds(), took[8].Seconds(), took[1].Seconds())
	return nil
}

// verdicts returns the verdict on each change, sorted by the change's description.
func (b *bench) verdicts(p place) ([]string, error) {
	out, err := b.pawl(p, "log", "bench", "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("pawl log: %w", err)
	}
	var all []string
	for line := range strings.Lines(string(out)) {
		var e struct {
			Record *struct {
				Description, Reason string
				Kept                bool
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			return nil, err
		}
		if r := e.Record; r != nil {
			all = append(all, fmt.Sprintf("%s: kept %t %s", r.Description, r.Kept, r.Reason))
		}
	}
	slices.Sort(all)
	return all, nil
}
