// Package doctor finds out what is wrong with an installation: with its home, engines, hardware, configuration, models and
// store. Each check is a function of its own, of what is known of the installation ([Subject]); none changes anything.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
)

// Status is what a check has found.
type Status string

// The statuses, from good to bad.
const (
	OK      Status = "ok"
	Warning Status = "warning" // something may go wrong, or could be better
	Problem Status = "problem" // something doesn't work
)

// Finding is what a check has found: a sentence, and where it isn't ok, another one that says what to do.
type Finding struct {
	Check   string `json:"check"`
	Status  Status `json:"status"`
	Message string `json:"message"`
	Advice  string `json:"advice,omitempty"`
}

// Report is what all checks have found.
type Report struct {
	Home     string    `json:"home"`
	Running  bool      `json:"running"` // a server answers on the home
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// Subject is the installation that is examined.
type Subject struct {
	Home   home.Dir
	Server *client.Client         // of the server that runs on the home; nil: none does
	Config *caddymodule.Described // the server's, or that of a server which is started now; nil: it has an error
	Error  error                  // of the configuration

	// IsSilent says that something accepts connections on the home's socket, and doesn't answer.
	IsSilent bool

	File string // with the configuration; empty: there is none

	// Tokens lists the tokens; nil: they aren't looked at.
	Tokens func(context.Context) ([]resource.Token, error)

	dev      string             // the folder of the devices; empty: /dev
	hardware *runtimes.Hardware // nil: that of this machine

	enginePatience time.Duration // 0: [enginePatience]
}

// checks are all checks, in the order of a report.
var checks = []struct {
	name string
	find func(context.Context, *Subject) findings
}{
	{"home", checkHome},
	{"disk", checkDisk},
	{"server", checkServer},
	{"configuration", checkConfiguration},
	{"engine", checkEngines},
	{"gpu", checkGPU},
	{"memory", checkMemory},
	{"models", checkModels},
	{"remotes", checkRemotes},
	{"cluster", checkCluster},
	{"store", checkStore},
	{"tokens", checkTokens},
	{"ports", checkPorts},
	{"certificate", checkCertificate},
	{"sandbox", checkSandbox},
	{"limits", func(context.Context, *Subject) findings { return ofLimits(limits()) }},
	{"clock", checkClock},
}

// checkTimeout bounds each check: a driver, a database or a network file system may hang.
const checkTimeout = 40 * time.Second

// Examine runs all checks.
func Examine(ctx context.Context, s *Subject) Report {
	r := Report{Home: string(s.Home), Running: s.Server != nil, Findings: []Finding{}}
	for _, c := range checks {
		for _, f := range bounded(ctx, s, c.find) {
			f.Check = cmp.Or(f.Check, c.name)
			switch f.Status {
			case Problem:
				r.Problems++
			case Warning:
				r.Warnings++
			}
			r.Findings = append(r.Findings, f)
		}
	}
	return r
}

// bounded runs a check. One that takes too long is abandoned: what it waits for may never happen.
func bounded(ctx context.Context, s *Subject, find func(context.Context, *Subject) findings) (late findings) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	found := make(chan findings, 1)
	go func() { found <- find(ctx, s) }()
	select {
	case f := <-found:
		return f
	case <-ctx.Done():
		late.warn("See whether the disk, a driver or a database hangs.", "This check took too long, and was abandoned.")
		return late
	}
}

// findings are what a check has found so far.
type findings []Finding

func (f *findings) ok(format string, args ...any) findings {
	*f = append(*f, Finding{Status: OK, Message: fmt.Sprintf(format, args...)})
	return *f
}

func (f *findings) warn(advice, format string, args ...any) findings {
	*f = append(*f, Finding{Status: Warning, Message: fmt.Sprintf(format, args...), Advice: advice})
	return *f
}

func (f *findings) problem(advice, format string, args ...any) findings {
	*f = append(*f, Finding{Status: Problem, Message: fmt.Sprintf(format, args...), Advice: advice})
	return *f
}
