package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
)

type tokenFlags struct {
	name, expires  string
	scopes, models []string
	limits         map[string]*int // by the API's names
}

// limitFlags are the flags of a token's limits, by the API's names.
var limitFlags = map[string]string{ //nolint:gosec // no credentials
	"requests_per_minute": "requests-per-minute", "tokens_per_day": "tokens-per-day", "concurrent_requests": "concurrent",
}

// newTokenFlags adds the flags of a token to a command. The strings describe the defaults.
func newTokenFlags(cmd *cobra.Command, scoped, models, expires string) *tokenFlags {
	f := &tokenFlags{limits: map[string]*int{}}
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "a name that says what the token is for")
	flags.StringSliceVar(&f.scopes, "scopes", nil, "what it may do, separated by commas (default: "+scoped+")")
	flags.StringSliceVar(&f.models, "models", nil,
		"keys of the models that it may use, separated by commas; * matches any characters but a slash, '' means all (default: "+models+")")
	flags.StringVar(&f.expires, "expires", "",
		"when it expires: after a duration, such as 30d or 12h, at a date, such as 2027-01-31, or never (default: "+expires+")")
	_ = cmd.RegisterFlagCompletionFunc("scopes", kit.CompleteOneOf(scopes()...)) // it fails only if there is no such flag
	for name, usage := range map[string]string{
		"requests_per_minute": "maximum requests per minute; 0: unlimited",
		"tokens_per_day":      "maximum input and output tokens per day; 0: unlimited",
		"concurrent_requests": "maximum concurrent requests; 0: unlimited",
	} {
		f.limits[name] = flags.Int(limitFlags[name], 0, usage)
	}
	return f
}

func (f *tokenFlags) edit(cmd *cobra.Command, now time.Time) (client.TokenEdit, error) {
	var e client.TokenEdit
	given := cmd.Flags().Changed
	if given("name") {
		e.Name = &f.name
	}
	if given("scopes") {
		e.Scopes = words(f.scopes)
		for _, s := range *e.Scopes {
			if err := kit.CheckValue("scopes", s, scopes()); err != nil {
				return e, err
			}
		}
	}
	if given("models") {
		e.Models = words(f.models)
	}
	if given("expires") {
		at, err := expiry(f.expires, now)
		if err != nil {
			return e, err
		}
		e.Expires = &at
	}
	for name, flag := range limitFlags {
		if given(flag) {
			if e.Limits == nil {
				e.Limits = map[string]int{}
			}
			e.Limits[name] = *f.limits[name]
		}
	}
	return e, nil
}

// words returns the non-empty words, without spaces around them.
func words(given []string) *[]string {
	some := []string{}
	for _, w := range given {
		if w = strings.TrimSpace(w); w != "" {
			some = append(some, w)
		}
	}
	return &some
}

// expiry returns when a token ends, or nil for never.
func expiry(text string, now time.Time) (*time.Time, error) {
	if text == "never" {
		return nil, nil //nolint:nilnil // no time is one of the answers
	}
	if after, err := caddy.ParseDuration(text); err == nil {
		at := now.Add(after).UTC().Truncate(time.Millisecond)
		return &at, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			at = at.UTC()
			return &at, nil
		}
	}
	return nil, fmt.Errorf("--expires %s: give a duration such as 30d or 12h, a day such as 2027-01-31, or never", text)
}
