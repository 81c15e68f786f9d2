package secret

import "regexp"

// format is a kind of credential that is known by how it looks. hint is a text that is in every one
// of them, so that most lines are not held against the expression at all; the first group, or else
// the match, is the credential. random says that it must also look as if it were made by chance.
type format struct {
	kind   string
	hint   string
	find   *regexp.Regexp
	random bool
}

// formats are those that people really leave in code. A secret blocks a loop until a person comes,
// so what could as well be something else is not among them.
var formats = []format{
	{"a private key", "PRIVATE KEY", regexp.MustCompile(`-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----`), false},
	{"an AWS access key", "AKIA", regexp.MustCompile(`\b(AKIA[A-Z2-7]{16})\b`), false},
	{"an AWS access key", "ASIA", regexp.MustCompile(`\b(ASIA[A-Z2-7]{16})\b`), false},
	{"a GitHub token", "gh", regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36,255})\b`), false},
	{"a GitHub token", "github_pat_", regexp.MustCompile(`\b(github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b`), false},
	{"a GitLab token", "glpat-", regexp.MustCompile(`\b(glpat-[A-Za-z0-9_-]{20,})`), false},
	{"a Slack token", "xox", regexp.MustCompile(`\b(xox[abeoprs]-[0-9]{8,}-[0-9A-Za-z-]{10,})`), false},
	{"a Slack webhook", "hooks.slack.com", regexp.MustCompile(`hooks\.slack\.com/services/(T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,})`), false},
	{"a Stripe key", "_live_", regexp.MustCompile(`\b([sr]k_live_[0-9A-Za-z]{20,})`), false},
	{"a Google API key", "AIza", regexp.MustCompile(`\b(AIza[0-9A-Za-z_-]{35})`), false},
	{"a Google client secret", "GOCSPX-", regexp.MustCompile(`\b(GOCSPX-[0-9A-Za-z_-]{28})`), false},
	{"an Anthropic API key", "sk-ant-", regexp.MustCompile(`\b(sk-ant-[a-z]+[0-9]{2}-[A-Za-z0-9_-]{60,})`), false},
	{"an OpenAI API key", "sk-", regexp.MustCompile(`\b(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})`), false},
	{"a Hugging Face token", "hf_", regexp.MustCompile(`\b(hf_[A-Za-z]{34})\b`), false},
	{"an npm token", "npm_", regexp.MustCompile(`\b(npm_[A-Za-z0-9]{36})\b`), false},
	{"a PyPI token", "pypi-", regexp.MustCompile(`\b(pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,})`), false},
	{"a SendGrid key", "SG.", regexp.MustCompile(`\b(SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})`), false},
	{"a DigitalOcean token", "_v1_", regexp.MustCompile(`\b(do[opr]_v1_[a-f0-9]{64})\b`), false},
	{"a PuTTY private key", "PuTTY-User-Key-File-", regexp.MustCompile(`PuTTY-User-Key-File-[0-9]:`), false},
	{"a Stripe webhook secret", "whsec_", regexp.MustCompile(`\b(whsec_[A-Za-z0-9+/=]{32,})`), true},
	{"a Braintree token", "access_token$", regexp.MustCompile(`\b(access_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32})\b`), false},
	{"a Discord webhook", "/api/webhooks/", regexp.MustCompile(`discord(?:app)?\.com/api/webhooks/([0-9]{17,20}/[A-Za-z0-9_-]{60,})`), false},
	{"a Zapier webhook", "hooks.zapier.com", regexp.MustCompile(`hooks\.zapier\.com/hooks/catch/([0-9]{5,}/[a-z0-9]{5,})`), false},
	{"a Google access token", "ya29.", regexp.MustCompile(`\b(ya29\.[A-Za-z0-9_-]{30,})`), false},
	{"a Firebase server key", "AAAA", regexp.MustCompile(`\b(AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{120,})`), false},
	{"an Azure storage key", "AccountKey=", regexp.MustCompile(`\bAccountKey=([A-Za-z0-9+/]{86}==)`), false},
	{"an Azure shared access key", "SharedAccessKey=", regexp.MustCompile(`\bSharedAccessKey=([A-Za-z0-9+/]{43}=)`), false},
	{"an Azure shared access signature", "sig=", regexp.MustCompile(`[?&]sig=([A-Za-z0-9%+/]{40,}(?:%3[Dd]|=))`), false},
	{"an npm credential", ":_auth", regexp.MustCompile(`:_auth(?:Token)?\s*=\s*"?([A-Za-z0-9+/=_-]{20,})`), false},
	{"a NuGet key", "oy2", regexp.MustCompile(`\b(oy2[a-z0-9]{43})\b`), true},
	{"a Docker Hub token", "dckr_", regexp.MustCompile(`\b(dckr_[op]at_[A-Za-z0-9_-]{27,})`), false},
	{"a registry's login", `"auth"`, regexp.MustCompile(`"auth"\s*:\s*"([A-Za-z0-9+/]{20,}={0,2})"`), true},
	{"basic credentials", "asic ", regexp.MustCompile(`(?i)authorization["']?\s*[:=,]\s*["']?basic ([A-Za-z0-9+/]{16,}={0,2})`), true},
	{"a password of a .netrc", "machine", regexp.MustCompile(`\bmachine\s+\S+\s+login\s+\S+\s+password\s+([^\s<$]{8,})`), false},
	{"an OpenRouter key", "sk-or-", regexp.MustCompile(`\b(sk-or-v1-[0-9a-f]{64})\b`), false},
	{"a Groq key", "gsk_", regexp.MustCompile(`\b(gsk_[A-Za-z0-9]{52})\b`), false},
	{"an xAI key", "xai-", regexp.MustCompile(`\b(xai-[A-Za-z0-9]{80})\b`), false},
	{"a Replicate token", "r8_", regexp.MustCompile(`\b(r8_[A-Za-z0-9]{37})\b`), false},
	{"an NVIDIA key", "nvapi-", regexp.MustCompile(`\b(nvapi-[A-Za-z0-9_-]{60,})`), false},
	{"a LangSmith key", "lsv2_", regexp.MustCompile(`\b(lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10})\b`), false},
	{"a Pinecone key", "pcsk_", regexp.MustCompile(`\b(pcsk_[A-Za-z0-9]{5,7}_[A-Za-z0-9]{50,})\b`), false},
	{"a New Relic key", "NRAK-", regexp.MustCompile(`\b(NRAK-[A-Z0-9]{27})\b`), false},
	{"an Airtable token", "pat", regexp.MustCompile(`\b(pat[A-Za-z0-9]{14}\.[0-9a-f]{64})\b`), false},
	{"a Figma token", "figd_", regexp.MustCompile(`\b(figd_[A-Za-z0-9_-]{38,})`), false},
	{"a Supabase token", "sbp_", regexp.MustCompile(`\b(sbp_(?:v0_)?[0-9a-f]{40})\b`), false},
	{"a Supabase secret key", "sb_secret_", regexp.MustCompile(`\b(sb_secret_[A-Za-z0-9_-]{31,})`), false},
	{"a Mapbox secret token", "sk.eyJ", regexp.MustCompile(`\b(sk\.eyJ[A-Za-z0-9_-]{30,}\.[A-Za-z0-9_-]{20,})`), false},
	{"a Dropbox token", "sl.", regexp.MustCompile(`\b(sl\.(?:u\.)?[A-Za-z0-9_-]{130,})`), false},
	{"a Buildkite token", "bkua_", regexp.MustCompile(`\b(bkua_[0-9a-f]{40})\b`), false},
	{"a CircleCI token", "CCIPAT_", regexp.MustCompile(`\b(CCIPAT_[A-Za-z0-9]{22}_[0-9a-f]{40})\b`), false},
	{"a Tailscale key", "tskey-", regexp.MustCompile(`\b(tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,})`), false},
	{"a Contentful token", "CFPAT-", regexp.MustCompile(`\b(CFPAT-[A-Za-z0-9_-]{43})`), false},
	{"a Netlify token", "nfp_", regexp.MustCompile(`\b(nfp_[A-Za-z0-9]{36,})\b`), false},
	{"a Salesforce token", "00D", regexp.MustCompile(`\b(00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{80,})`), false},
	{"a JSON web token", "eyJ", regexp.MustCompile(`\b(eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,})`), false},
	{"a bearer token", "earer ", regexp.MustCompile(`\b[Bb]earer ([A-Za-z0-9._~+/=-]{20,})`), true},
	{"a URL with a password", "://", regexp.MustCompile(`[a-z][a-z0-9+.-]*://[^\s/:@'"]*:([^\s/:@'"]{10,})@[A-Za-z0-9]`), true},
}

// in hands on what of the format is in a line.
func (f *format) in(line string, add func(Found)) {
	for _, m := range f.find.FindAllStringSubmatchIndex(line, -1) {
		start, end := m[len(m)-2], m[len(m)-1]
		if text := line[start:end]; !placeholder(text) && (!f.random || random(text)) {
			add(Found{f.kind, start, end, text})
		}
	}
}
