package caddymodule

import (
	"context"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/lmcaddy/lmcaddy/node/record"
)

// tellCaddy makes a request's summary known to Caddy: as the field lm of its access log, and as the placeholders {http.lm.*}. Both are
// only made into text where something asks for them.
func tellCaddy(ctx context.Context, s *record.Summary) {
	if replace, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		replace.Map(func(name string) (any, bool) {
			if figure, isOurs := strings.CutPrefix(name, placeholderPrefix); isOurs {
				return placeholderOf(s, figure)
			}
			return nil, false
		})
	}
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || server.Logs == nil {
		return
	}
	if extra, ok := ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		extra.Set(zap.Object("lm", (*loggedSummary)(s)))
	}
}

const placeholderPrefix = "http.lm."

// placeholderOf returns the value of the placeholder {http.lm.<name>}. Durations are in seconds.
func placeholderOf(s *record.Summary, name string) (any, bool) {
	switch name {
	case "request":
		return s.ID, true
	case "dialect":
		return s.Dialect, true
	case "outcome":
		return s.Outcome, true
	case "model":
		return s.Model, true
	case "instance":
		return s.Instance, true
	case "owner":
		return s.Owner, true
	case "token":
		return s.TokenName, true
	case "tokens_in":
		return s.Usage.Prompt, true
	case "tokens_cached":
		return s.Usage.Cached, true
	case "tokens_out":
		return s.Usage.Completion, true
	case "tools":
		return s.Tools, true
	case "queue":
		return s.Queue.Seconds(), true
	case "load":
		return s.Load.Seconds(), true
	case "first_token":
		return s.FirstToken.Seconds(), true
	case "per_token":
		return s.PerToken.Seconds(), true
	default:
		return nil, false
	}
}

// loggedSummary is a summary as the field of an access log. What doesn't apply is left out.
type loggedSummary record.Summary

// MarshalLogObject writes the fields.
func (s *loggedSummary) MarshalLogObject(to zapcore.ObjectEncoder) error {
	for _, f := range []struct{ name, value string }{
		{"request", s.ID},
		{"dialect", s.Dialect},
		{"outcome", s.Outcome},
		{"model", s.Model},
		{"instance", s.Instance},
		{"owner", s.Owner},
		{"token", s.TokenName},
	} {
		if f.value != "" {
			to.AddString(f.name, f.value)
		}
	}
	if s.Instance == "" {
		return nil
	}
	to.AddInt("tokens_in", s.Usage.Prompt)
	to.AddInt("tokens_cached", s.Usage.Cached)
	to.AddInt("tokens_out", s.Usage.Completion)
	if s.Tools > 0 {
		to.AddInt("tools", s.Tools)
	}
	for _, f := range []struct {
		name string
		took time.Duration
	}{{"queue", s.Queue}, {"load", s.Load}, {"restore", s.Restore}, {"first_token", s.FirstToken}, {"per_token", s.PerToken}} {
		if f.took > 0 {
			to.AddDuration(f.name, f.took)
		}
	}
	return nil
}

// Interface guards
var _ zapcore.ObjectMarshaler = (*loggedSummary)(nil)
