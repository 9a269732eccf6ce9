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
			name, isOurs := strings.CutPrefix(name, "http.lm.")
			for _, f := range figuresOf(s) {
				if isOurs && f.name == name {
					if d, isDuration := f.value.(time.Duration); isDuration {
						return d.Seconds(), true
					}
					return f.value, true
				}
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

// summaryFigure is a part of a summary by its name in the access log, and in placeholders: a text, a number or a duration.
type summaryFigure struct {
	name  string
	value any
}

func figuresOf(s *record.Summary) []summaryFigure {
	return []summaryFigure{
		{"request", s.ID},
		{"dialect", s.Dialect},
		{"outcome", s.Outcome},
		{"model", s.Model},
		{"instance", s.Instance},
		{"owner", s.Owner},
		{"token", s.TokenName},
		{"tokens_in", s.Usage.Prompt},
		{"tokens_cached", s.Usage.Cached},
		{"tokens_out", s.Usage.Completion},
		{"tools", s.Tools},
		{"queue", s.Queue},
		{"load", s.Load},
		{"restore", s.Restore},
		{"first_token", s.FirstToken},
		{"per_token", s.PerToken},
	}
}

// loggedSummary is a summary as the field of an access log. What doesn't apply is left out.
type loggedSummary record.Summary

func (s *loggedSummary) MarshalLogObject(to zapcore.ObjectEncoder) error {
	for _, f := range figuresOf((*record.Summary)(s)) {
		switch v := f.value.(type) {
		case string:
			if v != "" {
				to.AddString(f.name, v)
			}
		case int:
			if s.Instance != "" && (v > 0 || f.name != "tools") {
				to.AddInt(f.name, v)
			}
		case time.Duration:
			if s.Instance != "" && v > 0 {
				to.AddDuration(f.name, v)
			}
		}
	}
	return nil
}
