package secretscan

import "pawl/internal/lib/lazyregexp"

// format is a kind of credential that has a recognisable form. Every credential of this kind contains hint, so that
// the regular expression only runs on lines with it. The credential is the first group of find, or else the whole
// match. random says that it must also look random.
type format struct {
	kind   string
	hint   string
	find   lazyregexp.Regexp
	random bool
}

// formats are the kinds of credentials that people leave in code. A secret stops a loop until a person comes, so a
// form that other texts may have is not in the list.
var formats = []format{
	{"a private key", "PRIVATE KEY", lazyregexp.New(`-----BEGIN (?:[A-Z]+ ){0,2}PRIVATE KEY(?: BLOCK)?-----`), false},
	{"an AWS access key", "AKIA", lazyregexp.New(`\b(AKIA[A-Z2-7]{16})\b`), false},
	{"an AWS access key", "ASIA", lazyregexp.New(`\b(ASIA[A-Z2-7]{16})\b`), false},
	{"a GitHub token", "gh", lazyregexp.New(`\b(gh[pousr]_[A-Za-z0-9]{36,255})\b`), false},
	{"a GitHub token", "github_pat_", lazyregexp.New(`\b(github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b`), false},
	{"a GitLab token", "glpat-", lazyregexp.New(`\b(glpat-[A-Za-z0-9_-]{20,})`), false},
	{"a Slack token", "xox", lazyregexp.New(`\b(xox[abeoprs]-[0-9]{8,}-[0-9A-Za-z-]{10,})`), false},
	{"a Slack webhook", "hooks.slack.com", lazyregexp.New(`hooks\.slack\.com/services/(T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,})`), false},
	{"a Stripe key", "_live_", lazyregexp.New(`\b([sr]k_live_[0-9A-Za-z]{20,})`), false},
	{"a Google API key", "AIza", lazyregexp.New(`\b(AIza[0-9A-Za-z_-]{35})`), false},
	{"a Google client secret", "GOCSPX-", lazyregexp.New(`\b(GOCSPX-[0-9A-Za-z_-]{28})`), false},
	{"an Anthropic API key", "sk-ant-", lazyregexp.New(`\b(sk-ant-[a-z]+[0-9]{2}-[A-Za-z0-9_-]{60,})`), false},
	{"an OpenAI API key", "sk-", lazyregexp.New(`\b(sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20})`), false},
	{"a Hugging Face token", "hf_", lazyregexp.New(`\b(hf_[A-Za-z0-9]{34,40})\b`), false},
	{"a Telegram bot token", ":AA", lazyregexp.New(`(?:\b|bot)([0-9]{8,10}:AA[A-Za-z0-9_-]{33})(?:[^A-Za-z0-9_-]|$)`), true},
	{"a Facebook token", "EAA", lazyregexp.New(`\b(EAA[B-Z][A-Za-z0-9]{90,})`), true},
	{"a Mailgun key", "key-", lazyregexp.New(`(?:^|[^\w.-])(key-[0-9a-f]{32})\b`), true},
	{"an age key", "AGE-SECRET-KEY-", lazyregexp.New(`\b(AGE-SECRET-KEY-(?:PQ-)?1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{50,})`), false},
	{"an npm token", "npm_", lazyregexp.New(`\b(npm_[A-Za-z0-9]{36})\b`), false},
	{"a PyPI token", "pypi-", lazyregexp.New(`\b(pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,})`), false},
	{"a SendGrid key", "SG.", lazyregexp.New(`\b(SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})`), false},
	{"a DigitalOcean token", "_v1_", lazyregexp.New(`\b(do[opr]_v1_[a-f0-9]{64})\b`), false},
	{"a PuTTY private key", "PuTTY-User-Key-File-", lazyregexp.New(`PuTTY-User-Key-File-[0-9]:`), false},
	{"a Stripe webhook secret", "whsec_", lazyregexp.New(`\b(whsec_[A-Za-z0-9+/=]{32,})`), true},
	{"a Braintree token", "access_token$", lazyregexp.New(`\b(access_token\$production\$[0-9a-z]{16}\$[0-9a-f]{32})\b`), false},
	{"a Discord webhook", "/api/webhooks/", lazyregexp.New(`discord(?:app)?\.com/api/webhooks/([0-9]{17,20}/[A-Za-z0-9_-]{60,})`), false},
	{"a Zapier webhook", "hooks.zapier.com", lazyregexp.New(`hooks\.zapier\.com/hooks/catch/([0-9]{5,}/[a-z0-9]{5,})`), false},
	{"a Google access token", "ya29.", lazyregexp.New(`\b(ya29\.[A-Za-z0-9_-]{30,})`), false},
	{"a Firebase server key", "AAAA", lazyregexp.New(`\b(AAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{120,})`), false},
	{"an Azure storage key", "AccountKey=", lazyregexp.New(`\bAccountKey=([A-Za-z0-9+/]{86}==)`), false},
	{"an Azure shared access key", "SharedAccessKey=", lazyregexp.New(`\bSharedAccessKey=([A-Za-z0-9+/]{43}=)`), false},
	{"an Azure shared access signature", "sig=", lazyregexp.New(`[?&]sig=([A-Za-z0-9%+/]{40,}(?:%3[Dd]|=))`), false},
	{"an npm credential", ":_auth", lazyregexp.New(`:_auth(?:Token)?\s*=\s*"?([A-Za-z0-9+/=_-]{20,})`), false},
	{"a NuGet key", "oy2", lazyregexp.New(`\b(oy2[a-z0-9]{43})\b`), true},
	{"a Docker Hub token", "dckr_", lazyregexp.New(`\b(dckr_[op]at_[A-Za-z0-9_-]{27,})`), false},
	{"a registry's login", `"auth"`, lazyregexp.New(`"auth"\s*:\s*"([A-Za-z0-9+/]{20,}={0,2})"`), true},
	{"basic credentials", "asic ", lazyregexp.New(`(?i)authorization["']?\s*[:=,]\s*["']?basic ([A-Za-z0-9+/]{16,}={0,2})`), true},
	{"a password of a .netrc", "machine", lazyregexp.New(`\bmachine\s+\S+\s+login\s+\S+\s+password\s+([^\s<$]{8,})`), false},
	{"an OpenRouter key", "sk-or-", lazyregexp.New(`\b(sk-or-v1-[0-9a-f]{64})\b`), false},
	{"a Groq key", "gsk_", lazyregexp.New(`\b(gsk_[A-Za-z0-9]{52})\b`), false},
	{"an xAI key", "xai-", lazyregexp.New(`\b(xai-[A-Za-z0-9]{80})\b`), false},
	{"a Replicate token", "r8_", lazyregexp.New(`\b(r8_[A-Za-z0-9]{37})\b`), false},
	{"an NVIDIA key", "nvapi-", lazyregexp.New(`\b(nvapi-[A-Za-z0-9_-]{60,})`), false},
	{"a LangSmith key", "lsv2_", lazyregexp.New(`\b(lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10})\b`), false},
	{"a Pinecone key", "pcsk_", lazyregexp.New(`\b(pcsk_[A-Za-z0-9]{5,7}_[A-Za-z0-9]{50,})\b`), false},
	{"a New Relic key", "NRAK-", lazyregexp.New(`\b(NRAK-[A-Z0-9]{27})\b`), false},
	{"an Airtable token", "pat", lazyregexp.New(`\b(pat[A-Za-z0-9]{14}\.[0-9a-f]{64})\b`), false},
	{"a Figma token", "figd_", lazyregexp.New(`\b(figd_[A-Za-z0-9_-]{38,})`), false},
	{"a Supabase token", "sbp_", lazyregexp.New(`\b(sbp_(?:v0_)?[0-9a-f]{40})\b`), false},
	{"a Supabase secret key", "sb_secret_", lazyregexp.New(`\b(sb_secret_[A-Za-z0-9_-]{31,})`), false},
	{"a Mapbox secret token", "sk.eyJ", lazyregexp.New(`\b(sk\.eyJ[A-Za-z0-9_-]{30,}\.[A-Za-z0-9_-]{20,})`), false},
	{"a Dropbox token", "sl.", lazyregexp.New(`\b(sl\.(?:u\.)?[A-Za-z0-9_-]{130,})`), false},
	{"a Buildkite token", "bkua_", lazyregexp.New(`\b(bkua_[0-9a-f]{40})\b`), false},
	{"a CircleCI token", "CCIPAT_", lazyregexp.New(`\b(CCIPAT_[A-Za-z0-9]{22}_[0-9a-f]{40})\b`), false},
	{"a Tailscale key", "tskey-", lazyregexp.New(`\b(tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,})`), false},
	{"a Contentful token", "CFPAT-", lazyregexp.New(`\b(CFPAT-[A-Za-z0-9_-]{43})`), false},
	{"a Netlify token", "nfp_", lazyregexp.New(`\b(nfp_[A-Za-z0-9]{36,})\b`), false},
	{"a Salesforce token", "00D", lazyregexp.New(`\b(00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{80,})`), false},
	{"a JSON web token", "eyJ", lazyregexp.New(`\b(eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,})`), false},
	{"a bearer token", "earer ", lazyregexp.New(`\b[Bb]earer ([A-Za-z0-9._~+/=-]{20,})`), true},
	{"a URL with a password", "://", lazyregexp.New(`[a-z][a-z0-9+.-]*://[^\s/:@'"]*:([^\s/:@'"]{10,})@[A-Za-z0-9]`), true},
}
