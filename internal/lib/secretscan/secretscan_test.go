package secretscan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/secretscan"
)

func made(parts ...string) string { return strings.Join(parts, "") }

const chance = "q7Zp2Xv9Lk4Tn8Rw3Ys6Bd1Fh5Jm0Gc2Ve8Qa4Ux7"

func TestSecretsAreFound(t *testing.T) {
	for _, c := range []struct{ kind, line string }{
		{"a private key", made("-----BEGIN RSA PRI", "VATE KEY-----")},
		{"a private key", made("key = `-----BEGIN OPENSSH PRI", "VATE KEY-----")},
		{"a private key", made("-----BEGIN PGP PRI", "VATE KEY BLOCK-----")},
		{"an AWS access key", made(`aws_access_key_id = AK`, `IAQ7ZP2XV5LK4TN6RW`)},
		{"a GitHub token", made("  token: gh", "p_", chance[:36])},
		{"a GitHub token", made("token: gh", "p_", chance[:14], "Your", chance[14:32])}, // by chance
		{"a GitHub token", made("token: gh", "p_", chance[:14], "xXxX", chance[14:32])},
		{"a GitHub token", made("token: gh", "p_", chance[:14], "abcdef", chance[14:30])},
		{"a GitHub token", made("https://x-access-token:gh", "s_", chance[:36], "@github.com/a/b")},
		{"a GitHub token", made("github_", "pat_", chance[:22], "_", chance, chance[:18])},
		{"a GitLab token", made("glp", "at-", chance[:20])},
		{"a Slack token", made("xox", "b-123987456012-", chance[:24])},
		{"a Stripe key", made("sk_", "live_", chance[:24])},
		{"a Google API key", made("AI", "za", chance[:35])},
		{"an Anthropic API key", made("sk-", "ant-api03-", chance, chance)},
		{"an OpenAI API key", made("sk-", "proj-", chance)},
		{"a Hugging Face token", made("hf", "_", strings.Repeat("qZpXvLkTnRwYsBdFh", 2))},
		{"an npm token", made("//registry.npmjs.org/:_authToken=npm", "_", chance[:36])},
		{"a JSON web token", made("ey", "JhbGciOiJIUzI1NiJ9.ey", "JzdWIiOiIxMjM0In0.", chance)},
		{"a bearer token", made(`curl -H "Authorization: Bearer `, chance, `"`)},
		{"a URL with a password", made("postgres://app:", chance[:16], "@db.internal/app")},
		{"a secret in quotes", made(`const apiKey = "`, chance[:32], `"`)},
		{"a secret in quotes", made(`"client_secret": "`, chance[:24], `",`)},
		{"a secret in quotes", made(`DB_PASSWORD := '`, chance[:20], `'`)},
		{"a secret in a setting", made(`SECRET_KEY_BASE=`, chance[:40])},
		{"a secret in a setting", made(`export MY_TOKEN=`, chance[:32], ` # mine`)},
		{"a secret in quotes", made(`token = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"`)},
	} {
		t.Run(c.kind, func(t *testing.T) {
			var scan secretscan.Scan
			scan.Line("a", 7, true, "\t"+c.line)
			require.Equal(t, []secretscan.Secret{{Path: "a", Line: 7, Kind: c.kind}}, scan.Secrets(), c.line)
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
		`FROM golang:1.26@sha256:1e2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f607`,
		`  resolved "https://registry.yarnpkg.com/left-pad/-/left-pad-1.3.0.tgz#5b8a3a7765dfe001261dde915589e782f8c94d1e"`,
		`ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIL0mZ3c0Y1Jq8v3b5n7k9m1p2q4r6s8t0u2w4x6y8zAB me@host`,
		`ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7k3v9Zp2Xq7Lk4Tn8Rw3Ys6Bd1Fh5Jm0Gc2Ve8Qa4 me@host`,
		`<path d="M12.4 3.1C7.3 3.1 3.1 7.3 3.1 12.4s4.2 9.3 9.3 9.3 9.3-4.2 9.3-9.3z"/>`,
		`background: url(data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)`,
		`//# sourceMappingURL=main.8f3d2c1b9a7e6f50.js.map`,
		`git checkout 5b8a3a7765dfe001261dde915589e782f8c94d1e`,
		`id: 550e8400-e29b-41d4-a716-446655440000`,
		`const nextPageToken = response.nextPageToken ?? undefined;`,
		`curl -H "Authorization: Bearer $GITHUB_TOKEN" https://api.github.com/user`,
		"curl -H \"Authorization: Bearer ${TOKEN}\" https://api.example.com",
		`headers["Authorization"] = "Basic " + base64Encode(user + ":" + password)`,
		`DATABASE_URL=postgres://postgres:postgres@localhost:5432/test`,
		`mongodb://root:example@mongo:27017/`,
		`stripe.Key = os.Getenv("STRIPE_SECRET_KEY")`,
		`pk_test_TYooMQauvdEDq54NiTphI7jx`,
		`dsn: "https://examplePublicKey@o0.ingest.sentry.io/0"`,
		`gtag('config', 'G-8XQ2ZK1M4P');`,
		`client_id: 1234567890-q7zp2xv9lk4tn8rw3ys6bd1fh5jm0gc2.apps.googleusercontent.com`,
		`password_hash = "$2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW"`,
		`csrf_token = "{{ csrf_token() }}"`,
		`--token-file=/var/run/secrets/kubernetes.io/serviceaccount/token`,
		`secretKeyRef: {name: db-credentials, key: password-of-the-app-2}`,
		`assert decode(token) == {"sub": "1234567890", "name": "Ada", "iat": 1516239022}`,
		`var apiKeyHeaderName = "X-Api-Key-Of-The-Service-V2"`,
		`facebook: "https://www.facebook.com/groups/golang.developers.2024"`,
		`twitter_handle = "@the_go_programming_language_2024"`,
		`heroku config:set NODE_ENV=production NPM_CONFIG_PRODUCTION=false`,
		`npm_config_registry=https://registry.npmjs.org/`,
		`//registry.npmjs.org/:_authToken=${NPM_TOKEN}`,
		`machine api.example.org login me password <your-password>`,
		`the token is read from the file; see docs/tokens.md#rotation-2024`,
		`discordClient.login(process.env.DISCORD_BOT_TOKEN_FOR_TESTS_2)`,
		`sha512-abc: z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==`,
		`ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"`,
		`key := sha256.Sum256([]byte("pawl"))`,
		`"kubernetes.io/service-account-token"`,
		`okta: {issuer: "https://dev-1234567.okta.com/oauth2/default"}`,
		`-----BEGIN PGP PUBLIC KEY BLOCK-----`,
		`password: "P@ssw0rd2024!"`,
		`password = "S3cr3t!Pa55word"`,
		`"password": "Passw0rd!Passw0rd!"`,
		`password: "<your-key-Of-2024!>"`,
		`password: "Changeme-1!a2B3c"`,
		`password: "${DB_Passw0rd!}"`,
		`password: $DB_PASSWORD_2`,
		`password = "%s:%d@tcp(%s)/%s?Z1=x2"`,
		`password = cfg.DB2.Passw0rd`,
		`password: form.value.Passw0rd!,`,
		`password: req.body.p1 !== X2 ? a : B3,`,
		`password: "$2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW"`,
		`password: "pbkdf2_sha256$260000$a1B2c3D4$e5F6g7H8i9J0="`,
		`password: "^[A-Za-z0-9!@#$%]{8,}$"`,
		`token: "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"`,
		`token = "2024-07-01T10:00:00.000Z"`,
		`password: "correct-Horse7-battery-Staple!"`,
		`cache-key-d41d8cd98f00b204e9800998ecf8427e`,
		`react key={"row-key-d41d8cd98f00b204e9800998ecf8427e"}`,
		`1234567890:AAExampleTokenExampleTokenExampleTok`,
		`110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawxxxx`,
		`d="M0EAAAAALAAsAFAAfACQAKAA0gD4ATgBSgGCAbQB4AISAkYCrgLQAtwC9AMQA0QAEAAAALAAsAFAAfACQAKAA0gD4ATgBSgGCAbQB4AIS"`,
		`src: url(data:font/woff2;base64,d09GMgABAAAAA/EAAAAAsAFAAfACQAKAA0gD4ATgBSgGCAbQB4AISAkYCrgLQAtwC9AMQA0QEAAAAsAFAAfACQAKAA0gD4ATgBSgGCAb)`,
		`hf_hub_download_with_retries_and_a_cache_of_its_own()`,
		`xoxb-your-token-here`,
		`token: ghp_abcdefghijklmnopqrstuvwxyz0123456789`,
		`token: ghp_yourtokenyourtokenyourtokenyourtoke1`,
		`AGE-SECRET-KEY-1...`,
		`wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY`,
		`aws_secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"`,
		`api_key = "0123456789abcdef0123456789abcdef"`,
		`token = "abcdefghijklmnopqrstuvwxyz0123456789"`,
		`curl -u "user:$PASSWORD" https://api.example.com`,
		`curl -u user:test https://api.example.com`,
		`password: "a1-b2-c3-d4-e5-f6"`,
		`password: "A1-B2-C3-D4-E5-F6"`,
		`password: "aB-cD-eF-gH-iJ-kL"`,
		`password: "aB1aB1aB1aB1aB1aB1"`,
		`password: "aB3dE6gH9jK2"`,
	} {
		t.Run(line, func(t *testing.T) {
			var scan secretscan.Scan
			scan.Line("a", 1, true, line)
			require.Empty(t, scan.Secrets())
		})
	}
}

func TestRedactedTextHasNoCredentialLeft(t *testing.T) {
	for _, c := range known {
		text := secretscan.Redact("before\n" + c.line + "\nafter\n")
		require.True(t, strings.HasPrefix(text, "before\n") && strings.HasSuffix(text, "\nafter\n"), c.name)
		require.NotEqual(t, "before\n"+c.line+"\nafter\n", text, c.name)
		require.Empty(t, secretscan.Find(text), c.name)
	}
	require.Equal(t, "speed up the loop", secretscan.Redact("speed up the loop"))
	require.Equal(t, "use [a GitHub token] for now\n", secretscan.Redact(made("use gh", "p_", chance[:36], " for now\n")))
}

// TestOnlyTheCredentialIsHidden: what stands beside it remains, whichever source found it.
func TestOnlyTheCredentialIsHidden(t *testing.T) {
	github, aws := made("gh", "p_", chance[:36]), made("AK", "IAQ7ZP2XV5LK4TN6RW")
	for _, c := range []struct{ line, want string }{
		{"id " + github + " and " + aws + ".", "id [a GitHub token] and [an AWS access key]."}, // whatever the order of the formats
		{github + " " + github, "[a GitHub token] [a GitHub token]"},
		{"sonar.token=sq" + "p_" + by(hexa, 40) + " # CI", "sonar.token=[a sonar api token] # CI"},                                 // the group that the rule names
		{"linear_secret = " + by(hexa, 32) + ";", "linear_secret = [a linear client secret];"},                                     // the first group
		{"use xa" + "pp-1-A" + by(big, 10) + "-1239874560123-" + by(hexa, 64) + "!", "use [a slack app token]!"},                   // no group
		{"key: PM" + "AK-" + by(hexa, 24) + "-" + by(hexa, 34), "key: [a postman api token]"},                                      // no vowel
		{"EZ" + "AK" + by(alnum, 54), "[an easypost api token]"},                                                                   // a vowel
		{"token = " + chance[:32] + " # mine", "token = [a secret in a setting] # mine"},                                           // the rest of a setting's line
		{"run -e DB_PASSWORD=" + chance[:32] + " app", "run -e DB_PASSWORD=[a secret in a setting] app"},                           // the middle of a command
		{"- token: " + chance[:32], "- token: [a secret in a setting]"},                                                            // an entry of a list
		{"call(token=" + chance[:32] + ")", "call(token=" + chance[:32] + ")"},                                                     // a name in code
		{"if a.TOKEN == " + chance[:32] + " {", "if a.TOKEN == " + chance[:32] + " {"},                                             // a name in code
		{`password = "` + chance[:32] + ", and no end", `password = "` + chance[:32] + ", and no end"},                             // no end of the quotes
		{strings.Repeat("x", 100) + `_token = "` + chance[:32] + `"`, strings.Repeat("x", 100) + `_token = "` + chance[:32] + `"`}, // no name is that long
	} {
		require.Equal(t, c.want, secretscan.Redact(c.line))
	}
}

func TestOneSecretOfALineIsShown(t *testing.T) {
	github, aws := made("gh", "p_", chance[:36]), made("AK", "IAQ7ZP2XV5LK4TN6RW")
	var scan secretscan.Scan
	for _, at := range []secretscan.Secret{{Path: "a", Line: 1}, {Path: "a", Line: 2}, {Path: "b", Line: 2}} {
		scan.Line(at.Path, at.Line, true, aws+" "+github)
	}
	require.Equal(t, []secretscan.Secret{{Path: "a", Line: 1, Kind: "an AWS access key"}, {Path: "a", Line: 2, Kind: "an AWS access key"},
		{Path: "b", Line: 2, Kind: "an AWS access key"}}, scan.Secrets())
}

func TestASecretThatOnlyMovesIsNotNew(t *testing.T) {
	token := made("gh", "p_", chance[:36])
	var scan secretscan.Scan
	scan.Line("old.go", 3, false, token)
	scan.Line("new.go", 9, true, "  "+token)
	require.Empty(t, scan.Secrets())
	scan.Line("again.go", 1, true, token)
	require.Equal(t, []secretscan.Secret{{Path: "again.go", Line: 1, Kind: "a GitHub token"}}, scan.Secrets(), "there is one more now")
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
		var scan secretscan.Scan
		for i, l := range lines {
			scan.Line("a.go", i, true, l)
		}
	}
}

// TestALongLineTakesLittleTime: agents write lines of any length, and a program prints them.
func TestALongLineTakesLittleTime(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"=", ":", ": ", "X_TOKEN=", "token:"} {
		began := time.Now()
		secretscan.Find("token" + strings.Repeat(piece, (1<<20)/len(piece)) + "x")
		require.Less(t, time.Since(began), 20*time.Second, "%q", piece) // quadratic time would be minutes
	}
}
