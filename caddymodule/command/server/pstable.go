package server

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// writeOverview shows what is loaded to people.
func writeOverview(out io.Writer, r *resource.Overview, isWide bool) error {
	text := terminal.NewPage(out)
	if len(r.Instances) == 0 {
		text.WriteString("No model is loaded.\n")
	} else {
		writeInstances(text, r, isWide)
	}
	text.WriteString("\n")
	for _, c := range r.Coming {
		why := "its settings have changed"
		if c.Why != "" {
			why = c.Why
		}
		sentence(text, "%s restarts %s: %s", c.ID, kit.When(c.At, r.Time), why)
	}
	for _, f := range r.Failing {
		if slices.ContainsFunc(r.Coming, func(c resource.OverviewComing) bool { return c.Model == f.Model }) {
			continue // said already
		}
		again := ""
		if f.Until.After(r.Time) {
			again = ", and may be tried again " + kit.When(f.Until, r.Time)
		}
		sentence(text, "%s failed %s in a row%s; the last time: %s", f.Model, kit.Count(f.Count, "time"), again, f.Why)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Waiting)) {
		sentence(text, "%s waiting for %s", kit.Count(r.Waiting[key], "request"), key)
	}
	for i := range r.Nodes {
		terminal.Println(text, nodeInWords(&r.Nodes[i]))
	}
	for i := range r.Remotes {
		terminal.Println(text, remoteInWords(&r.Remotes[i], r.Time))
	}
	for _, fault := range r.Faults {
		sentence(text, "%s", fault)
	}
	for i := range r.Instances {
		if in := &r.Instances[i]; in.Split {
			sentence(text, "%s is not wholly on the GPU, and so many times slower: %s", in.ID, in.Placement)
		}
	}
	sentence(text, "Memory counted: %s%s", kit.Size(r.Memory), of(r.Limits.Memory > 0, kit.Size(r.Limits.Memory)))
	for i := range r.Devices {
		if d := &r.Devices[i]; d.Kind == "gpu" && !d.Unified {
			sentence(text, "%s", gpuInWords(d))
		}
	}
	sentence(text, "Instances: %d%s", len(r.Instances), of(r.Limits.Instances > 0, strconv.Itoa(r.Limits.Instances)))
	return text.Flush()
}

// gpuInWords says what is taken of a GPU with memory of its own.
func gpuInWords(d *resource.OverviewDevice) string {
	most := d.Total
	if d.Budget > 0 {
		most = d.Budget
	}
	words := fmt.Sprintf("%s: %s of %s", d.Name, kit.Size(d.Claimed), kit.Size(most))
	if d.Held > 0 {
		words += ", and other programs hold " + kit.Size(d.Held)
	}
	return words
}

func sentence(text io.StringWriter, format string, values ...any) {
	_, _ = text.WriteString(strings.TrimRight(terminal.Line(fmt.Sprintf(format, values...)), ". ") + ".\n") // to memory
}

// placementTitle is the title of the column that is shown only if there is a choice of where a model is.
const placementTitle = "ON"

// psColumns are the columns of the table. Those that aren't wide fit a terminal of 80 columns.
var psColumns = []struct {
	title  string
	isWide bool
	cell   func(in *resource.OverviewInstance, now time.Time) string
}{
	{"INSTANCE", false, func(in *resource.OverviewInstance, _ time.Time) string { return in.ID }},
	{"STATUS", false, func(in *resource.OverviewInstance, _ time.Time) string { return statusOf(in) }},
	{"IN USE", false, func(in *resource.OverviewInstance, _ time.Time) string {
		return fmt.Sprintf("%d/%d", in.InUse, in.Slots)
	}},
	{"CONTEXT", false, func(in *resource.OverviewInstance, _ time.Time) string {
		if in.ContextLength == 0 {
			return "-" // a remote doesn't tell
		}
		return strconv.Itoa(in.ContextLength)
	}},
	{"MEMORY", false, func(in *resource.OverviewInstance, _ time.Time) string { return kit.Size(in.Memory) }},
	{placementTitle, true, func(in *resource.OverviewInstance, _ time.Time) string { return kit.OrDash(in.Placement) }},
	{"RESIDENT", true, func(in *resource.OverviewInstance, _ time.Time) string {
		if in.Resident == 0 {
			return "-"
		}
		return kit.Size(in.Resident)
	}},
	{"LOADED", true, func(in *resource.OverviewInstance, now time.Time) string { return kit.Ago(in.LoadedAt, now) }},
	{"USED", false, func(in *resource.OverviewInstance, now time.Time) string {
		if in.InUse > 0 {
			return "now"
		}
		return kit.Ago(in.LastUsed, now)
	}},
	{"EXPIRES", false, expires},
	{"PID", true, func(in *resource.OverviewInstance, _ time.Time) string {
		if in.PID == 0 {
			return "-"
		}
		return strconv.Itoa(in.PID)
	}},
	{"ENGINE", true, func(in *resource.OverviewInstance, _ time.Time) string {
		return kit.OrDash(strings.TrimSpace(in.Engine + " " + in.EngineVersion))
	}},
}

func writeInstances(to io.Writer, r *resource.Overview, isWide bool) {
	table := terminal.NewTable(to)
	isPlaced := slices.ContainsFunc(r.Instances, func(in resource.OverviewInstance) bool { return in.Placement != "" })
	row := func(cell func(column int) string) {
		var cells []string
		for i := range psColumns {
			if (isWide || !psColumns[i].isWide) && (isPlaced || psColumns[i].title != placementTitle) {
				cells = append(cells, cell(i))
			}
		}
		table.Row(cells...)
	}
	row(func(column int) string { return psColumns[column].title })
	for i := range r.Instances {
		row(func(column int) string { return psColumns[column].cell(&r.Instances[i], r.Time) })
	}
	_ = table.Flush() // to memory
}

// nodeInWords describes a node of the cluster in a sentence.
func nodeInWords(n *resource.OverviewNode) string {
	name := n.Name
	if n.Self {
		name += " (this one)"
	}
	switch n.Status {
	case resource.RemoteUnreachable:
		return fmt.Sprintf("Node %s: unreachable: %s.", name, strings.TrimRight(n.Error, "."))
	case resource.NodeLeaving:
		return fmt.Sprintf("Node %s: shutting down.", name)
	case resource.NodeLate:
		return fmt.Sprintf("Node %s: connected, but it has told nothing of itself lately: it can't reach the store.", name)
	default:
		return fmt.Sprintf("Node %s: connected, %s, %s in progress, %d waiting.", name, kit.Count(n.Loaded, "loaded model"),
			kit.Count(n.InUse, "request"), n.Waiting)
	}
}

// remoteInWords describes a remote in a sentence.
func remoteInWords(r *resource.OverviewRemote, now time.Time) string {
	kind := strings.TrimSpace(r.Kind + " " + r.Version)
	if kind != "" {
		kind = " (" + kind + ")"
	}
	switch r.Status {
	case resource.RemoteConnected:
		return fmt.Sprintf("Remote %s%s: connected, %s.", r.Name, kind, kit.Count(r.Models, "model"))
	case resource.RemoteUnreachable:
		return fmt.Sprintf("Remote %s%s: unreachable since %s: %s.", r.Name, kind, kit.Ago(r.Since, now), strings.TrimRight(r.Error, "."))
	default:
		return fmt.Sprintf("Remote %s: connecting.", r.Name)
	}
}

func statusOf(in *resource.OverviewInstance) string {
	text := in.Status
	switch {
	case in.Progress != nil && *in.Progress > 0:
		text += fmt.Sprintf(" %.0f%%", *in.Progress*100)
	case in.Reason != "":
		text += " (" + in.Reason + ")"
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

func expires(in *resource.OverviewInstance, now time.Time) string {
	switch {
	case !in.Expires.IsZero():
		return kit.When(in.Expires, now)
	case in.TTLSeconds == 0:
		return "never"
	default:
		return "-" // its time doesn't run now
	}
}

// of describes a limit.
func of(isBounded bool, most string) string {
	if !isBounded {
		return ", no limit"
	}
	return " of " + most
}
