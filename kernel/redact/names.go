package redact

import "strings"

// credentialWords are the words that make a variable's name a credential's when
// one of its parts (between underscores) is, or ends in, one of them.
var credentialWords = []string{
	"KEY", "APIKEY", "ACCESSKEY", "SECRETKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS",
	"AUTH", "AUTHORIZATION", "COOKIE", "PAT", "DSN", "PASS", "JWT", "SECRETS",
}

// CredentialName reports whether a variable's name says that it holds a
// credential: OPENAI_API_KEY, GITHUB_TOKEN, DB_PASSWORD, npm_config__auth.
func CredentialName(name string) bool {
	for _, part := range strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		for _, w := range credentialWords {
			if part == w || len(w) > 4 && strings.HasSuffix(part, w) {
				return !harmless(strings.ToUpper(name))
			}
		}
	}
	return false
}

// harmless names hold a path, a socket or a setting, not a secret, and children
// need some of them.
func harmless(name string) bool {
	switch name {
	case "SSH_AUTH_SOCK", "XAUTHORITY", "GPG_KEY", "KEYMAP":
		return true
	}
	return false
}
