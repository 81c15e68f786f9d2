package govern_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/act"
	"pawl/internal/govern"
	"pawl/internal/loop"
	"pawl/internal/spec"
)

func at7(n int) *int { return &n }

func rules(p spec.Policy) spec.Spec {
	return spec.Spec{
		Scope: []string{"src/**"}, NewFiles: spec.Deny, Protect: []string{"src/golden/**"},
		Guard: spec.Guard{Policy: "strict"}, Policies: map[string]spec.Policy{"strict": p},
	}
}

var sealed = []loop.Seal{{Path: "src/guard.sh"}, {Path: "src/eval/score.sh"}, {Path: `"src/\303\266/x"`}}

func as(p string) string { return p }

func TestP3_PoliciesJudgeTheDiff(t *testing.T) {
	for _, c := range []struct {
		name   string
		diff   govern.Diff
		rule   string
		blocks bool
	}{
		{"inside the scope", govern.Diff{Path: "src/a.go"}, "", false},
		{"deleted inside the scope", govern.Diff{Path: "src/a.go", Deleted: true}, "", false},
		{"outside the scope", govern.Diff{Path: "README.md"}, "scope", false},
		{"new inside the scope", govern.Diff{Path: "src/new.go", Added: true}, "newFiles", false},
		{"a sealed file", govern.Diff{Path: "src/guard.sh"}, "sealed", true},
		{"a sealed file deleted", govern.Diff{Path: "src/guard.sh", Deleted: true}, "sealed", true},
		{"a new file among the protected", govern.Diff{Path: "src/golden/x", Added: true}, "sealed", true},
		{"attributes beside a sealed file", govern.Diff{Path: "src/eval/.gitattributes", Added: true}, "sealed", true},
		{"attributes above sealed files", govern.Diff{Path: ".gitattributes"}, "sealed", true},
		{"attributes beside no sealed file", govern.Diff{Path: "src/lib/.gitattributes"}, "", false},
		{"a repository around a sealed file", govern.Diff{Path: "src/eval", Why: "a nested git repository"}, "sealed", true},
		{"a repository around no sealed file", govern.Diff{Path: "src/lib", Why: "a nested git repository"}, "fileType", false},
		{"a folder of a name like a sealed file's", govern.Diff{Path: "src/ev", Why: "a FIFO"}, "fileType", false},
		{"the desk is gone", govern.Diff{Path: ".", Why: "it was removed"}, "fileType", false},
		{"a link out of the tree", govern.Diff{Path: "src/a.go", Escapes: true}, "symlink", false},
		{"a FIFO", govern.Diff{Path: "src/pipe", Why: "a FIFO"}, "fileType", false},
		{"a binary file, by default", govern.Diff{Path: "src/a.png", Binary: true}, "", false},
		{"a file of the size that is allowed", govern.Diff{Path: "src/a", Size: 10 << 20}, "", false},
		{"a file that is larger", govern.Diff{Path: "src/a", Size: 10<<20 + 1}, "maxFileBytes", false},
		{"a large file that goes", govern.Diff{Path: "src/a", Size: 10<<20 + 1, Deleted: true}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := govern.Judge(rules(spec.Policy{}), sealed, govern.Change{Files: []govern.Diff{c.diff}}, as).Violations
			if c.rule == "" {
				require.Empty(t, v)
				return
			}
			require.Equal(t, []string{"strict", c.rule, c.diff.Path}, []string{v[0].Policy, v[0].Rule, v[0].Path})
			require.Equal(t, c.blocks, v[0].Blocks)
			require.NotEmpty(t, v[0].Detail)
		})
	}
	t.Run("a name that git quotes", func(t *testing.T) {
		v := govern.Judge(rules(spec.Policy{}), sealed, govern.Change{Files: []govern.Diff{{Path: "src/ö/.gitattributes"}}}, func(p string) string {
			return `"` + strings.ReplaceAll(p, "ö", `\303\266`) + `"`
		}).Violations
		require.Equal(t, "sealed", v[0].Rule)
	})
	t.Run("what blocks comes first, and the list is bounded", func(t *testing.T) {
		var diffs []govern.Diff
		for range 100 {
			diffs = append(diffs, govern.Diff{Path: "README.md"})
		}
		v := govern.Judge(rules(spec.Policy{}), sealed, govern.Change{
			Files: append(diffs, govern.Diff{Path: "src/guard.sh"}), Secrets: []govern.Secret{{Path: "README.md", Line: 3, Kind: "a GitHub token"}},
		}, as).Violations
		require.Equal(t, "sealed", v[0].Rule)
		require.Equal(t, act.Violation{Policy: "strict", Rule: "secrets", Path: "README.md", Line: 3, Detail: "it looks like a GitHub token", Blocks: true}, v[1])
		require.Equal(t, "secrets: README.md:3, it looks like a GitHub token", v[1].String())
		require.Len(t, v, 20)
	})
	t.Run("every rule that a file breaks is named", func(t *testing.T) {
		v := govern.Judge(rules(spec.Policy{Binary: spec.Deny}), sealed, govern.Change{Files: []govern.Diff{{Path: "x.png", Added: true, Binary: true, Size: 1 << 30}}}, as).Violations
		require.Equal(t, "scope newFiles binary maxFileBytes", names(v))
	})
}

// TestEveryRuleIsCarriedOut breaks all rules of the table at once.
func TestEveryRuleIsCarriedOut(t *testing.T) {
	one := 1
	p := spec.Policy{Binary: spec.Deny, MaxFileBytes: &one, MaxFiles: &one, MaxLines: &one, MaxTotalFiles: &one, MaxTotalLines: &one}
	broken := map[string]bool{}
	for _, v := range govern.Judge(rules(p), sealed, govern.Change{
		Files: []govern.Diff{
			{Path: "src/guard.sh"}, {Path: "README", Added: true, Binary: true, Size: 2, Escapes: true}, {Path: "pipe", Why: "a FIFO"},
		},
		Lines: 2, TotalFiles: 2, TotalLines: 2, Secrets: []govern.Secret{{Path: "src/a", Line: 1, Kind: "a token"}},
	}, as).Violations {
		broken[v.Rule] = true
	}
	for _, r := range spec.Rules {
		require.True(t, broken[r.Name], "nothing carries out %s", r.Name)
	}
	require.Len(t, broken, len(spec.Rules))
}

func names(list []act.Violation) string {
	var out []string
	for _, v := range list {
		out = append(out, v.Rule)
	}
	return strings.Join(out, " ")
}

// TestL5_TheChangeRadiusIsJudged: by the change alone, and by all that the loop did.
func TestL5_TheChangeRadiusIsJudged(t *testing.T) {
	p := spec.Policy{MaxFiles: at7(2), MaxLines: at7(10), MaxTotalFiles: at7(3), MaxTotalLines: at7(20)}
	two := []govern.Diff{{Path: "src/a"}, {Path: "src/b"}}
	for _, c := range []struct {
		name   string
		policy spec.Policy
		change govern.Change
		rules  string
	}{
		{"as much as may be", p, govern.Change{Files: two, Lines: 10, TotalFiles: 3, TotalLines: 20}, ""},
		{"a file too many", p, govern.Change{Files: append(two, govern.Diff{Path: "src/c"})}, "maxFiles"},
		{"a line too many", p, govern.Change{Files: two, Lines: 11}, "maxLines"},
		{"a file too many by now", p, govern.Change{Files: two, TotalFiles: 4}, "maxTotalFiles"},
		{"a line too many by now", p, govern.Change{Files: two, TotalLines: 21}, "maxTotalLines"},
		{"more than can be read", p, govern.Change{Files: two, Unread: true}, "maxLines"},
		{"no limits", spec.Policy{}, govern.Change{Files: two, Lines: 1e6, TotalFiles: 1e6, TotalLines: 1e6}, ""},
		{"secrets are allowed", spec.Policy{Secrets: spec.Allow}, govern.Change{Files: two, Secrets: []govern.Secret{{Path: "src/a"}}, Unread: true}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := govern.Judge(rules(c.policy), nil, c.change, as).Violations
			require.Equal(t, c.rules, names(v))
			for _, broken := range v {
				require.Equal(t, broken.Rule == "secrets", broken.Blocks)
				require.Empty(t, broken.Path)
				require.Contains(t, broken.String(), "the change")
			}
		})
	}
}

func TestA7_NewFilesAreAskedForWhereTheSpecSaysSo(t *testing.T) {
	s := rules(spec.Policy{})
	s.NewFiles = spec.Ask
	v := govern.Judge(s, sealed, govern.Change{Files: []govern.Diff{{Path: "src/a"}, {Path: "src/new", Added: true}, {Path: "src/eval/.gitattributes", Added: true}}}, as)
	require.Equal(t, []string{"src/new"}, v.Asks)
	require.Equal(t, "sealed", names(v.Violations))
}

// secret puts credentials together at run time, so that this file has none.
func secret(parts ...string) string { return strings.Join(parts, "") }

const chance = "q7Zp2Xv9Lk4Tn8Rw3Ys6Bd1Fh5Jm0Gc2Ve8Qa4Ux7"

func TestSecretsAreFound(t *testing.T) {
	for _, c := range []struct{ kind, line string }{
		{"a private key", secret("-----BEGIN RSA PRI", "VATE KEY-----")},
		{"a private key", secret("key = `-----BEGIN OPENSSH PRI", "VATE KEY-----")},
		{"a private key", secret("-----BEGIN PGP PRI", "VATE KEY BLOCK-----")},
		{"an AWS access key", secret(`aws_access_key_id = AK`, `IAQ7ZP2XV5LK4TN6RW`)},
		{"a GitHub token", secret("  token: gh", "p_", chance[:36])},
		{"a GitHub token", secret("https://x-access-token:gh", "s_", chance[:36], "@github.com/a/b")},
		{"a GitHub token", secret("github_", "pat_", chance[:22], "_", chance, chance[:18])},
		{"a GitLab token", secret("glp", "at-", chance[:20])},
		{"a Slack token", secret("xox", "b-123987456012-", chance[:24])},
		{"a Stripe key", secret("sk_", "live_", chance[:24])},
		{"a Google API key", secret("AI", "za", chance[:35])},
		{"an Anthropic API key", secret("sk-", "ant-api03-", chance, chance)},
		{"an OpenAI API key", secret("sk-", "proj-", chance)},
		{"a Hugging Face token", secret("hf", "_", strings.Repeat("qZpXvLkTnRwYsBdFh", 2))},
		{"an npm token", secret("//registry.npmjs.org/:_authToken=npm", "_", chance[:36])},
		{"a JSON web token", secret("ey", "JhbGciOiJIUzI1NiJ9.ey", "JzdWIiOiIxMjM0In0.", chance)},
		{"a bearer token", secret(`curl -H "Authorization: Bearer `, chance, `"`)},
		{"a URL with a password", secret("postgres://app:", chance[:16], "@db.internal/app")},
		{"a secret in quotes", secret(`const apiKey = "`, chance[:32], `"`)},
		{"a secret in quotes", secret(`"client_secret": "`, chance[:24], `",`)},
		{"a secret in quotes", secret(`DB_PASSWORD := '`, chance[:20], `'`)},
		{"a secret in a setting", secret(`SECRET_KEY_BASE=`, chance[:40])},
		{"a secret in a setting", secret(`export MY_TOKEN=`, chance[:32], ` # mine`)},
		{"a secret in quotes", secret(`token = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"`)},
	} {
		t.Run(c.kind, func(t *testing.T) {
			var scan govern.SecretScan
			scan.Line("a", 7, true, "\t"+c.line)
			require.Equal(t, []govern.Secret{{Path: "a", Line: 7, Kind: c.kind}}, scan.Secrets(), c.line)
		})
	}
}

func TestWhatIsNoSecretIsNotTakenForOne(t *testing.T) {
	for _, line := range []string{
		`password = os.Getenv("DATABASE_PASSWORD_FOR_PRODUCTION")`,
		`apiKey: process.env.OPENAI_API_KEY_2024_PRODUCTION,`,
		`token := generateRandomTokenForUser2024(ctx, user)`,
		`const tokenizer = "bert-base-uncased-v2-20231104-final"`,
		`max_tokens: 4096`,
		`"integrity": "sha512-q7Zp2Xv9Lk4Tn8Rw3Ys6Bd1Fh5Jm0Gc2Ve8Qa4Ux7q7Zp2Xv9Lk4Tn8Rw3Ys6Bd1Fh5Jm0Gc2Ve8Q==",`,
		`golang.org/x/sync v0.17.0 h1:l60nONMj9l5drqw6jlhIELNv9I0A4OFgRsG9k2oT9Ug=`,
		`commit = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"`,
		`password: "correct horse battery staple"`,
		`SECRET_KEY = "change-me-in-production-please-2024"`,
		`api_key = "YOUR_API_KEY_GOES_HERE_1234567"`,
		`aws_access_key_id = AKIAIOSFODNN7EXAMPLE`,
		`token = "${{ secrets.GITHUB_TOKEN_FOR_RELEASE_2 }}"`,
		`token: $CI_JOB_TOKEN_2_LONG_ENOUGH_TO_COUNT`,
		`secretName: my-app-tls-certificate-2024-07`,
		`idempotencyToken: "3f2504e0-4f89-41d3-9a0c-0305e82c3301"`,
		`postgres://user:password@localhost:5432/db`,
		`postgres://app:${DB_PASSWORD}@localhost/app`,
		`https://host.example.com:8443/path@v1.2.3`,
		`passwordHash = "0123456789abcdef0123456789abcdef"`,
		`if token == "" { return errors.New("no token in the Authorization header") }`,
		`func TestTokenExpiresAfter24HoursAndIsRenewed(t *testing.T) {`,
		`-----BEGIN PUBLIC KEY-----`,
		`-----BEGIN CERTIFICATE-----`,
		`// see BEGIN RSA PRIVATE KEY in the docs`,
		`Authorization: Bearer <token>`,
		`keyboardShortcut = "ctrl-shift-alt-F12-and-more"`,
		`monkey: "q7Zp2Xv9Lk4Tn8Rw3Ys6Bd1Fh5Jm0Gc2"`,
		`tokens["q7Zp2Xv9Lk4Tn8Rw3Ys6Bd1Fh5Jm0Gc2"] = 1`,
		`sk-learn-contrib-hdbscan-0.8.33-py3-none-any`,
		`partitionKey = "tenant#region#2024-07-01#orders"`,
	} {
		t.Run(line, func(t *testing.T) {
			var scan govern.SecretScan
			scan.Line("a", 1, true, line)
			require.Empty(t, scan.Secrets())
		})
	}
}

func TestASecretThatOnlyMovesIsNotNew(t *testing.T) {
	token := secret("gh", "p_", chance[:36])
	var scan govern.SecretScan
	scan.Line("old.go", 3, false, token)
	scan.Line("new.go", 9, true, "  "+token)
	require.Empty(t, scan.Secrets())
	scan.Line("again.go", 1, true, token)
	require.Equal(t, []govern.Secret{{Path: "again.go", Line: 1, Kind: "a GitHub token"}}, scan.Secrets(), "there is one more now")
}

func BenchmarkSecretScan(b *testing.B) {
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("\tif value, ok := table[%d]; ok { return value.token(%d), nil } // see the key of the table", i, i))
	}
	n := 0
	for _, l := range lines {
		n += len(l)
	}
	b.SetBytes(int64(n))
	for b.Loop() {
		var scan govern.SecretScan
		for i, l := range lines {
			scan.Line("a.go", i, true, l)
		}
	}
}
