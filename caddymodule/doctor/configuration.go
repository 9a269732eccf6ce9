package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// checkConfiguration checks that the configuration is valid, and who can use its sites.
func checkConfiguration(_ context.Context, s *Subject) []Finding {
	where := s.File
	if where == "" {
		where = "The default configuration"
	}
	if errors.Is(s.Error, fs.ErrNotExist) || errors.Is(s.Error, fs.ErrPermission) {
		return one(Problem, fmt.Sprintf("%s can't be read: %s.", where, strings.TrimSuffix(s.Error.Error(), ".")),
			"Name the Caddyfile with --config, and see whether this user may read it.")
	}
	if s.Error != nil {
		return one(Problem, fmt.Sprintf("%s is not valid: %s.", where, strings.TrimSuffix(s.Error.Error(), ".")),
			`Correct it; "lmcaddy validate" checks it again.`)
	}
	var found []Finding
	if other := s.Config.Home; other != "" && !isSame(other, string(s.Home)) {
		found = append(found, one(Warning, fmt.Sprintf("The configuration has the home %s, and commands look for the server on %s.",
			other, s.Home), "Leave home out of the Caddyfile, or set LMCADDY_HOME to the same folder where commands are typed.")...)
	}
	for _, site := range s.Config.Sites {
		if site.Reachable && !site.Authentication {
			found = append(found, one(Warning, fmt.Sprintf("Anybody who can reach %s can use the models.",
				strings.Join(site.Addresses, ", ")),
				`Put lm_auth before lm_api, and create a token with "lmcaddy token create"; or bind the site to 127.0.0.1.`)...)
		}
		if site.Reachable && site.Authentication && !site.TLS {
			found = append(found,
				one(Warning, fmt.Sprintf("Tokens and conversations are sent to %s unencrypted, unless a proxy before it does TLS.",
					strings.Join(site.Addresses, ", ")),
					"Use https in the site's address: tls internal makes a certificate for a local network.")...)
		}
	}
	if len(found) == 0 {
		found = ok("%s is valid.", upperFirst(where))
		if len(s.Config.Sites) == 0 {
			found = one(Warning, "No site has lm_api: only commands on this machine can use the models.",
				`Add lm_api to a site, or start the server with "lmcaddy serve".`)
		}
	}
	return found
}

// isSame reports whether two paths are of the same folder.
func isSame(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func upperFirst(text string) string {
	if text == "" || strings.HasPrefix(text, "/") {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
