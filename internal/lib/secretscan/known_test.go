package secretscan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"pawl/internal/lib/secretscan"
)

// The characters of credentials.
const (
	digits = "0123456789"
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alnum  = digits + lower + upper
	small  = digits + lower
	big    = digits + upper
	hexa   = digits + "abcdef"
	b64    = alnum + "+/"
	url64  = alnum + "-_"
)

// by returns n characters of set that look random. They are the same in each run.
func by(set string, n int) string {
	var b strings.Builder
	x := uint64(len(set)*1000003 + n)
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b.WriteByte(set[x%uint64(len(set))])
	}
	return b.String()
}

// known has credentials in the formats that their makers document, each in a line as people leave it in code. They
// are put together at run time, so that this file contains none.
var known = []struct{ name, line string }{
	{"AWS access key", `aws_access_key_id = ` + "AK" + "IA" + by(upper[:20]+"234567", 16)},
	{"AWS temporary key", `AccessKeyId: "` + "AS" + "IA" + by(upper[:20]+"234567", 16) + `"`},
	{"AWS secret access key", `aws_secret_access_key = ` + by(b64, 40)},
	{"AWS Bedrock key", `key="AB` + "SK" + by(b64, 128) + `="`},
	{"GitHub classic token", `git clone https://x:gh` + "p_" + by(alnum, 36) + `@github.com/o/r`},
	{"GitHub OAuth token", `"gh` + "o_" + by(alnum, 36) + `"`},
	{"GitHub user-to-server token", `gh` + "u_" + by(alnum, 36)},
	{"GitHub server-to-server token", `TOKEN=gh` + "s_" + by(alnum, 36)},
	{"GitHub refresh token", `gh` + "r_" + by(alnum, 36)},
	{"GitHub fine-grained token", `github` + "_pat_" + by(alnum, 22) + "_" + by(alnum, 59)},
	{"GitLab token", `gl` + "pat-" + by(url64, 20)},
	{"GitLab runner token", `gl` + "rt-" + by(url64, 20)},
	{"GitLab deploy token", `gl` + "dt-" + by(alnum, 20)},
	{"GitLab trigger token", `gl` + "ptt-" + by(hexa, 40)},
	{"Bitbucket app password", `https://me:AT` + "BB" + by(alnum, 24) + by(big[:16], 8) + `@bitbucket.org/o/r.git`},
	{"Atlassian API token", `ATATT3x` + "FfGF0" + by(url64, 171) + "=" + by(digits+"ABCDEF", 8)},
	{"Slack bot token", `"xo` + "xb-" + by(digits[1:], 12) + "-" + by(digits[1:], 13) + "-" + by(alnum, 24) + `"`},
	{"Slack user token", `xo` + "xp-" + by(digits[1:], 12) + "-" + by(digits[1:], 12) + "-" + by(digits[1:], 12) + "-" + by(hexa, 32)},
	{"Slack app token", `xa` + "pp-1-A" + by(big, 10) + "-" + by(digits[1:], 13) + "-" + by(hexa, 64)},
	{"Slack refresh token", `xo` + "xe-1-" + by(alnum, 146)},
	{"Slack webhook", `https://hooks.` + "slack.com/services/T" + by(big, 10) + "/B" + by(big, 10) + "/" + by(alnum, 24)},
	{"Discord bot token", `discord_token = "M` + by(alnum, 23) + "." + by(alnum, 6) + "." + by(url64, 38) + `"`},
	{"Discord webhook", `https://discord.com/api/` + "webhooks/" + by(digits[1:], 18) + "/" + by(url64, 68)},
	{"Telegram bot token", `telegram_token: ` + by(digits[1:], 10) + ":A" + by(url64, 34)},
	{"Stripe secret key", `stripe.api_key = "sk_` + "live_" + by(alnum, 24) + `"`},
	{"Stripe restricted key", `rk_` + "live_" + by(alnum, 99)},
	{"Stripe webhook secret", `whs` + "ec_" + by(alnum, 32)},
	{"Square access token", `sq0` + "atp-" + by(url64, 22)},
	{"Braintree access token", `access_` + "token$production$" + by(small, 16) + "$" + by(hexa, 32)},
	{"Shopify admin token", `shp` + "at_" + by(hexa, 32)},
	{"Shopify shared secret", `shp` + "ss_" + by(hexa, 32)},
	{"Twilio API key", `S` + "K" + by(hexa, 32)},
	{"Twilio auth token", `TWILIO_AUTH_TOKEN=` + by(hexa, 32)},
	{"SendGrid key", `S` + "G." + by(url64, 22) + "." + by(url64, 43)},
	{"Mailgun key", `mailgun = "key` + "-" + by(hexa, 32) + `"`},
	{"Mailchimp key", `mailchimp_api_key: ` + by(hexa, 32) + "-us12"},
	{"Brevo key", `xkeys` + "ib-" + by(hexa, 64) + "-" + by(alnum, 16)},
	{"Google API key", `AI` + "za" + by(url64, 35)},
	{"Google client secret", `GOC` + "SPX-" + by(url64, 28)},
	{"Google access token", `ya2` + "9." + by(url64, 120)},
	{"Google refresh token", `"refresh_token": "1/` + "/0" + by(url64, 60) + `"`},
	{"Google service account", `"private_key": "-----BEGIN PRI` + `VATE KEY-----\nMIIE` + by(b64, 40) + `"`},
	{"Firebase server key", `AA` + "AA" + by(url64, 7) + ":AP" + "A91b" + by(url64, 134)},
	{"Azure storage key", `DefaultEndpointsProtocol=https;AccountName=x;Account` + "Key=" + by(b64, 86) + `==;EndpointSuffix=core.windows.net`},
	{"Azure client secret", `AZURE_CLIENT_SECRET=` + by(alnum, 3) + "8Q~" + by(alnum, 34)},
	{"Azure SAS", `https://x.blob.core.windows.net/c?sv=2022-11-02&se=2025-01-01&sr=c&sp=r&s` + "ig=" + by(alnum, 40) + "%2B" + `K%3D`},
	{"DigitalOcean token", `do` + "p_v1_" + by(hexa, 64)},
	{"Heroku key", `HRK` + "U-AA" + by(url64, 58)},
	{"Cloudflare origin CA key", `v1.` + "0-" + by(hexa, 24) + "-" + by(hexa, 146)},
	{"Cloudflare API token", `CLOUDFLARE_API_TOKEN=` + by(url64, 40)},
	{"npm token", `//registry.npmjs.org/:_authToken=np` + "m_" + by(alnum, 36)},
	{"npm legacy token", `//registry.npmjs.org/:_auth` + "Token=" + "3fa85c64-5717-4562-b3fc-2c963f66afa6"},
	{"PyPI token", `password = py` + "pi-AgEIcHlwaS5vcmc" + by(url64, 150)},
	{"RubyGems key", `ruby` + "gems_" + by(hexa, 48)},
	{"crates.io token", `token = "ci` + "o" + by(alnum, 32) + `"`},
	{"NuGet key", `nuget push x.nupkg -k oy` + "2" + by(small, 43)},
	{"Docker Hub token", `dc` + "kr_pat_" + by(url64, 27)},
	{"Docker registry login", `"auths": {"https://index.docker.io/v1/": {"au` + `th": "` + by(b64, 44) + `"}}`},
	{"Hugging Face token", `h` + "f_" + by(lower+upper, 34)},
	{"OpenAI project key", `OPENAI_API_KEY=sk` + "-proj-" + by(url64, 74) + "T3Blb" + "kFJ" + by(url64, 74)},
	{"OpenAI legacy key", `sk` + "-" + by(alnum, 20) + "T3Blb" + "kFJ" + by(alnum, 20)},
	{"Anthropic key", `sk` + "-ant-api03-" + by(url64, 93) + "AA"},
	{"Anthropic OAuth token", `sk` + "-ant-oat01-" + by(url64, 95)},
	{"OpenRouter key", `sk` + "-or-v1-" + by(hexa, 64)},
	{"Groq key", `gs` + "k_" + by(alnum, 52)},
	{"xAI key", `xa` + "i-" + by(alnum, 80)},
	{"Perplexity key", `pp` + "lx-" + by(alnum, 48)},
	{"Replicate token", `r8` + "_" + by(alnum, 37)},
	{"NVIDIA key", `nv` + "api-" + by(url64, 64)},
	{"LangSmith key", `ls` + "v2_pt_" + by(hexa, 32) + "_" + by(hexa, 10)},
	{"Pinecone key", `pc` + "sk_" + by(alnum, 6) + "_" + by(alnum, 63)},
	{"Databricks token", `da` + "pi" + by(hexa, 32)},
	{"Vault token", `hv` + "s." + by(url64, 95)},
	{"Terraform Cloud token", by(alnum, 14) + ".atlas" + "v1." + by(url64, 67)},
	{"Pulumi token", `pu` + "l-" + by(hexa, 40)},
	{"Doppler token", `dp.` + "pt." + by(alnum, 43)},
	{"1Password service account", `op` + "s_eyJ" + by(alnum, 280)},
	{"age key", `AGE-SECRET-` + "KEY-1" + by("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)},
	{"Grafana service account", `gl` + "sa_" + by(alnum, 32) + "_" + by(hexa, 8)},
	{"Grafana Cloud token", `gl` + "c_eyJ" + by(alnum, 100)},
	{"Datadog key", `DD_API_KEY=` + by(hexa, 32)},
	{"New Relic key", `NR` + "AK-" + by(big, 27)},
	{"Sentry user token", `sn` + "tryu_" + by(hexa, 64)},
	{"Sentry organisation token", `sn` + "trys_eyJpYXQiO" + by(alnum, 80) + "LCJyZWdpb25fdXJs" + by(alnum, 60) + "_" + by(alnum, 43)},
	{"Linear key", `li` + "n_api_" + by(alnum, 40)},
	{"Notion token", `nt` + "n_" + by(digits, 11) + by(alnum, 35)},
	{"Airtable token", `pa` + "t" + by(alnum, 14) + "." + by(hexa, 64)},
	{"Figma token", `fi` + "gd_" + by(url64, 40)},
	{"Postman key", `PM` + "AK-" + by(hexa, 24) + "-" + by(hexa, 34)},
	{"PlanetScale password", `ps` + "cale_pw_" + by(alnum, 43)},
	{"Supabase token", `sb` + "p_" + by(hexa, 40)},
	{"Supabase secret key", `sb_` + "secret_" + by(url64, 31)},
	{"Fly.io token", `FlyV1 fm` + "2_lJPECAAAAAAAA" + by(alnum, 100)},
	{"Mapbox secret token", `sk` + ".eyJ" + by(alnum, 80) + "." + by(alnum, 22)},
	{"JSON web token", `ey` + "JhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.ey" + "J" + by(alnum, 60) + "." + by(url64, 86)},
	{"Bearer token", `-H "Authorization: Bear` + "er " + by(url64, 40) + `"`},
	{"Basic credentials", `Authorization: Bas` + "ic " + by(b64, 36) + `=`},
	{"PostgreSQL URL", `DATABASE_URL=postgres://app:` + by(alnum, 16) + `@db.internal:5432/app`},
	{"MongoDB URL", `mongodb+srv://app:` + by(alnum, 16) + `@cluster0.ab1cd.mongodb.net/app`},
	{"Redis URL", `redis://:` + by(alnum, 22) + `@cache.internal:6379/0`},
	{"OpenSSH key", `-----BEGIN OPENSSH PRI` + `VATE KEY-----`},
	{"PGP key", `-----BEGIN PGP PRI` + `VATE KEY BLOCK-----`},
	{"PuTTY key", `PuTTY-User-Key-` + `File-3: ssh-ed25519`},
	{".netrc", `machine api.example.org login me pass` + `word ` + by(alnum, 20)},
	{"Dynatrace token", `dt0c` + "01." + by(big, 24) + "." + by(big, 64)},
	{"Facebook token", `EAA` + "CEdEose0cBA" + by(alnum, 100)},
	{"Dropbox token", `sl.` + "B" + by(url64, 140)},
	{"EasyPost key", `EZ` + "AK" + by(alnum, 54)},
	{"Buildkite token", `bk` + "ua_" + by(hexa, 40)},
	{"CircleCI token", `CCI` + "PAT_" + by(alnum, 22) + "_" + by(hexa, 40)},
	{"LaunchDarkly key", `launchdarkly_key = "api-` + "3fa85c64-5717-4562-b3fc-2c963f66afa6" + `"`},
	{"Tailscale key", `ts` + "key-auth-" + by(alnum, 16) + "-" + by(alnum, 32)},
	{"Artifactory key", `AK` + "Cp" + by(alnum, 69)},
	{"SonarQube token", `sonar.token=sq` + "p_" + by(hexa, 40)},
	{"Clojars token", `CLO` + "JARS_" + by(hexa, 60)},
	{"Contentful token", `CF` + "PAT-" + by(url64, 43)},
	{"Microsoft Teams webhook", `https://x.webhook.office.com/webhookb2/3fa85c64-5717-4562-b3fc-2c963f66afa6@3fa85c64-5717-4562-b3fc-2c963f66afa6/Incoming` + "Webhook/" + by(small, 32) + "/3fa85c64-5717-4562-b3fc-2c963f66afa6"},
	{"Zapier webhook", `https://hooks.zapier` + ".com/hooks/catch/" + by(digits[1:], 7) + "/" + by(small, 7) + "/"},
	{"Prefect key", `pn` + "u_" + by(small, 36)},
	{"Vercel token", `VERCEL_TOKEN=` + by(alnum, 24)},
	{"Netlify token", `nf` + "p_" + by(alnum, 36)},
	{"Salesforce token", `00D` + by(alnum, 12) + "!AQ" + by(alnum, 94)},
	{"password in quotes", `password = "` + by(alnum, 22) + `"`},
	{"password in a setting", `docker run -e DB_PASSWORD=` + by(alnum, 22) + ` app`},
	{"Django key", `SECRET_KEY = 'django-in` + `secure-` + by(alnum, 50) + `'`},
	{"Slack app token with digits that count up", `xa` + "pp-1-A" + by(big, 10) + "-1234567890123-" + by(hexa, 64)},
	{"Hugging Face token with digits", `h` + "f_" + by(alnum, 34)},
	{"age key against quantum computers", `AGE-SECRET-` + "KEY-PQ-1" + by("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)},
	{"Telegram bot token alone", by(digits[1:], 10) + ":" + "AA" + by(url64, 33)},
	{"Telegram bot token in a URL", `https://api.telegram.org/bot` + by(digits[1:], 10) + ":" + "AA" + by(url64, 33) + `/getMe`},
	{"Telegram bot token in a setting", `BOT_TOKEN=` + by(digits[1:], 9) + ":" + "AA" + by(url64, 33)},
	{"Facebook token of an app", `EA` + "AB" + by(alnum, 180)},
	{"Mailgun key alone", `"key` + "-" + by(hexa, 32) + `"`},
	{"password with special characters", `password: "kP9#vL2` + `xQ7!mZ4@r"`},
	{"password with special characters in a setting", `DB_PASSWORD=kP9#vL2$` + `xQ7!mZ4@rT8n`},
	{"password with special characters, unquoted", `  password: kP9#vL2` + `xQ7!mZ4@r`},
	{"short password in quotes", `"password": "Tr0ub4` + `dor&3xK!",`},
	{"password of 16 characters", `password = "aG8xk2Lq` + `9Zp1Wm4T"`},
	{"Rails master key", `RAILS_MASTER_KEY=` + by(hexa, 32)},
}

func TestP3_CredentialsOfKnownFormatsAreFound(t *testing.T) {
	for _, c := range known {
		t.Run(c.name, func(t *testing.T) {
			require.NotEmpty(t, secretscan.Find(c.line), c.line)
			require.NotEmpty(t, secretscan.Find("\t"+c.line), c.line)
		})
	}
}
