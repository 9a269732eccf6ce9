package doctor

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkConfiguration checks that the configuration is valid, and who can use its sites.
func checkConfiguration(_ context.Context, s *Subject) (found findings) {
	where := cmp.Or(s.File, "The default configuration")
	switch {
	case errors.Is(s.Error, fs.ErrNotExist) || errors.Is(s.Error, fs.ErrPermission):
		return found.problem("Name the Caddyfile with --config, and see whether this user may read it.", "%s can't be read: %s.", where,
			strings.TrimSuffix(s.Error.Error(), "."))
	case s.Error != nil:
		return found.problem(`Correct it; "lmcaddy validate" checks it again.`, "%s is not valid: %s.", where,
			strings.TrimSuffix(s.Error.Error(), "."))
	}
	configured, err := os.Stat(s.Config.Home)
	commands, failed := os.Stat(string(s.Home))
	isSame := err == nil && failed == nil && os.SameFile(configured, commands)
	if other := s.Config.Home; other != "" && filepath.Clean(other) != filepath.Clean(string(s.Home)) && !isSame {
		found.warn("Leave home out of the Caddyfile, or set LMCADDY_HOME to the same folder where commands are typed.",
			"The configuration has the home %s, and commands look for the server on %s.", other, s.Home)
	}
	for _, mistake := range s.Config.Mistakes {
		found.warn(`Correct it in the Caddyfile; "lmcaddy reload" applies it.`, "%s.", upperFirst(mistake))
	}
	for _, site := range s.Config.Sites {
		if site.Reachable && !site.Authentication {
			found.warn(`Put lm_auth before lm_api, and create a token with "lmcaddy token create"; or bind the site to 127.0.0.1.`,
				"Anybody who can reach %s can use the models.", strings.Join(site.Addresses, ", "))
		}
		if site.Reachable && site.Authentication && !site.TLS {
			found.warn("Use https in the site's address: tls internal makes a certificate for a local network.",
				"Tokens and conversations are sent to %s unencrypted, unless a proxy before it does TLS.",
				strings.Join(site.Addresses, ", "))
		}
	}
	switch {
	case len(found) > 0:
	case len(s.Config.Sites) == 0:
		found.warn(`Add lm_api to a site, or start the server with "lmcaddy serve".`,
			"No site has lm_api: only commands on this machine can use the models.")
	default:
		found.ok("%s is valid.", upperFirst(where))
	}
	return found
}

func upperFirst(text string) string {
	if text == "" || strings.HasPrefix(text, "/") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
