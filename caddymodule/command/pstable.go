package command

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/caddymodule"
)

// writeReport shows what is loaded to people.
func writeReport(out io.Writer, r *caddymodule.Report) error {
	var text strings.Builder
	if len(r.Instances) == 0 {
		text.WriteString("No model is loaded.\n")
	} else {
		writeInstances(&text, r)
	}
	text.WriteString("\n")
	for _, c := range r.Coming {
		why := "its settings have changed"
		if c.Why != "" {
			why = c.Why
		}
		sentence(&text, "%s restarts %s: %s", c.ID, when(c.At, r.Time), why)
	}
	for _, f := range r.Failing {
		if slices.ContainsFunc(r.Coming, func(c caddymodule.ReportedComing) bool { return c.Model == f.Model }) {
			continue // said already
		}
		again := ""
		if f.Until.After(r.Time) {
			again = ", and may be tried again " + when(f.Until, r.Time)
		}
		sentence(&text, "%s failed %s in a row%s; the last time: %s", f.Model, count(f.Count, "time"), again, f.Why)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Waiting)) {
		sentence(&text, "%s waiting for %s", count(r.Waiting[key], "request"), key)
	}
	sentence(&text, "Memory counted: %s%s", memory(r.Memory), of(r.Limits.Memory > 0, memory(r.Limits.Memory)))
	sentence(&text, "Instances: %d%s", len(r.Instances), of(r.Limits.Instances > 0, strconv.Itoa(r.Limits.Instances)))
	_, err := io.WriteString(out, text.String())
	return err
}

func sentence(text *strings.Builder, format string, values ...any) {
	text.WriteString(strings.TrimRight(fmt.Sprintf(format, values...), ". \n") + ".\n")
}

func writeInstances(to io.Writer, r *caddymodule.Report) {
	table := newTable(to)
	_, _ = fmt.Fprintln(table, "INSTANCE\tSTATUS\tIN USE\tCONTEXT\tCOUNTED\tRESIDENT\tLOADED\tLAST USED\tEXPIRES\tPID\tENGINE")
	for i := range r.Instances {
		_, _ = fmt.Fprintln(table, strings.Join((*instance)(&r.Instances[i]).row(r.Time), "\t"))
	}
	_ = table.Flush() // to memory
}

// instance is an instance in the table.
type instance caddymodule.ReportedInstance

// row returns the instance's row in the table.
func (in *instance) row(now time.Time) []string {
	resident, pid := "-", "-"
	if in.Resident > 0 {
		resident = memory(in.Resident)
	}
	if in.PID > 0 {
		pid = strconv.Itoa(in.PID)
	}
	return []string{
		in.ID, in.status(), fmt.Sprintf("%d/%d", in.InUse, in.Slots), strconv.Itoa(in.ContextLength), memory(in.Memory), resident,
		ago(in.LoadedAt, now), in.lastUsed(now), in.expires(now), pid, orDash(strings.TrimSpace(in.Engine + " " + in.EngineVersion)),
	}
}

func (in *instance) status() string {
	text := in.Status
	switch {
	case in.Progress != nil && *in.Progress > 0:
		text += fmt.Sprintf(" %.0f%%", *in.Progress*100)
	case in.Reason != "":
		text += " (" + string(in.Reason) + ")"
	case in.Renewing:
		text += ", restart pending"
	}
	if in.Smaller {
		text += ", smaller"
	}
	if in.Pinned {
		text += ", pinned"
	}
	return text
}

func (in *instance) lastUsed(now time.Time) string {
	if in.InUse > 0 {
		return "now"
	}
	return ago(in.LastUsed, now)
}

func (in *instance) expires(now time.Time) string {
	switch {
	case !in.Expires.IsZero():
		return when(in.Expires, now)
	case in.TTLSeconds == 0:
		return "never"
	default:
		return "-" // its time doesn't run now
	}
}

// when describes a moment in the future, to the second.
func when(at, now time.Time) string {
	if left := at.Sub(now).Round(time.Second); left > 0 {
		return "in " + left.String()
	}
	return "now"
}

// ago describes a moment in the past, to the second.
func ago(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return max(now.Sub(at), 0).Round(time.Second).String() + " ago"
}

// memory describes a size as the log does.
func memory(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// of describes a limit.
func of(isBounded bool, most string) string {
	if !isBounded {
		return ", no limit"
	}
	return " of " + most
}
