package manage

import (
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/translate"
)

// parameters are those of a request's query. A parameter that is wrong is kept as err.
type parameters struct {
	url.Values
	err error
}

func parametersOf(c *endpoint.Call) *parameters { return &parameters{Values: c.Request.URL.Query()} }

func (p *parameters) wrong(name, must string) {
	p.err = translate.BadValue(name, "must be %s.", must)
}

// limit is the parameter limit, from least to most. Those that aren't given are as in absent, also for the methods below.
func (p *parameters) limit(least, most, absent int) int {
	given := p.Get("limit")
	if given == "" {
		return absent
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < least || n > most {
		p.wrong("limit", fmt.Sprintf("from %d to %d", least, most))
	}
	return n
}

func (p *parameters) bool(name string, absent bool) bool {
	given := p.Get(name)
	if given == "" {
		return absent
	}
	is, err := strconv.ParseBool(given)
	if err != nil {
		p.wrong(name, "true or false")
	}
	return is
}

func (p *parameters) time(name string) (at time.Time) {
	if given := p.Get(name); given != "" {
		var err error
		if at, err = time.Parse(time.RFC3339Nano, given); err != nil {
			p.wrong(name, "a time such as 2026-01-31T12:00:00Z")
		}
	}
	return at
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func (p *parameters) level(absent slog.Level) slog.Level {
	given := p.Get("level")
	level, ok := logLevels[strings.ToLower(given)]
	if given == "" {
		return absent
	}
	if !ok {
		p.wrong("level", `"debug", "info", "warn" or "error"`)
	}
	return level
}
