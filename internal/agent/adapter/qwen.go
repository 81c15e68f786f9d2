package adapter

import (
	"strings"

	"pawl/internal/loop"
)

// qwenArgv calls Qwen Code headless: with every tool, or, for a role that may not edit, with the tools that need no
// approval. Tools that are not approved are removed. In its safe mode neither hooks nor MCP servers of the repository
// run.
func qwenArgv(c Call) []string {
	argv := append(c.begin("-m"), c.Agent.Args...)
	mode := "yolo"
	if !c.MayEdit {
		mode = "plan"
	}
	if names := c.held().Withheld(c.approved()); len(names) > 0 {
		argv = append(argv, "--exclude-tools", strings.Join(names, ","))
	}
	return append(argv, "--safe-mode", "--approval-mode", mode, "--output-format", "stream-json")
}

// qwen reads the lines of `qwen --output-format stream-json`. They have the form of Claude Code's, but the input
// includes tokens from a cache, and there is no cost.
type qwen struct{ claude }

func (q *qwen) usage() loop.Usage {
	u := q.claude.usage()
	u.CostUSD = Dollars(0)
	return u
}
