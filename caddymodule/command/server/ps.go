package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// DefinePS defines `lmcaddy ps`.
func DefinePS(cmd *cobra.Command) {
	cmd.Long = `Shows the models that are loaded, loading or to be restarted, the waiting requests, and the memory in use.

It asks the server that runs on $LMCADDY_HOME, or the one at --host with a token that has the scope models.read. EXPIRES
counts from the end of an instance's last request; an instance in use has none.`
	cmd.Example = "  lmcaddy ps\n  lmcaddy ps --wide\n  lmcaddy ps --json"
	cmd.Args = cobra.NoArgs
	to := kit.NewConnection(cmd)
	flags := cmd.Flags()
	asJSON := flags.Bool("json", false, "print JSON, as GET /api/v1/ps has it")
	isWide := flags.BoolP("wide", "w", false, "show when each was loaded, the memory and the id of its process, and its engine, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ask := func(ctx context.Context, c *client.Client, into any) error { return c.Get(ctx, "/api/v1/ps", into) }
		return kit.Show(to, cmd, *asJSON, ask, func(out io.Writer, o *resource.Overview) error { return writeOverview(out, o, *isWide) })
	}
}

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
		sentence(text, "%s restarts %s: %s", c.ID, kit.When(c.At, r.Time), cmp.Or(c.Why, "its settings have changed"))
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
			sentence(text, "%s is not wholly on the GPU, which makes it many times slower: %s", in.ID, in.Placement)
		}
	}
	sentence(text, "Memory counted: %s%s", kit.Size(r.Memory), of(r.Limits.Memory > 0, kit.Size(r.Limits.Memory)))
	for i := range r.Devices {
		if d := &r.Devices[i]; d.Kind == "gpu" && !d.Unified {
			held := ""
			if d.Held > 0 {
				held = ", and other programs hold " + kit.Size(d.Held)
			}
			sentence(text, "%s: %s of %s%s", d.Name, kit.Size(d.Claimed), kit.Size(cmp.Or(d.Budget, d.Total)), held)
		}
	}
	sentence(text, "Instances: %d%s", len(r.Instances), of(r.Limits.Instances > 0, strconv.Itoa(r.Limits.Instances)))
	return text.Flush()
}

func sentence(text io.StringWriter, format string, values ...any) {
	_, _ = text.WriteString(strings.TrimRight(terminal.Line(fmt.Sprintf(format, values...)), ". ") + ".\n") // to memory
}

// psColumns are the titles of the table's columns, and psWide those of them that are shown only if more is wanted: without these, a
// terminal of 80 columns has room for the rest. The column ON is shown only if there is a choice of where a model is.
var (
	psColumns = []string{
		"INSTANCE", "STATUS", "IN USE", "CONTEXT", "MEMORY", "ON", "RESIDENT", "LOADED", "USED", "EXPIRES", "PID", "ENGINE",
	}
	psWide = []string{"ON", "RESIDENT", "LOADED", "PID", "ENGINE"}
)

// psCells returns the cells of an instance's row, one for each column. A remote doesn't tell everything.
func psCells(in *resource.OverviewInstance, now time.Time) []string {
	context, resident, pid, used := "-", "-", "-", "now"
	if in.ContextLength > 0 {
		context = strconv.Itoa(in.ContextLength)
	}
	if in.Resident > 0 {
		resident = kit.Size(in.Resident)
	}
	if in.PID > 0 {
		pid = strconv.Itoa(in.PID)
	}
	if in.InUse == 0 {
		used = kit.Ago(in.LastUsed, now)
	}
	return []string{
		in.ID, statusOf(in), fmt.Sprintf("%d/%d", in.InUse, in.Slots), context, kit.Size(in.Memory), kit.OrDash(in.Placement), resident,
		kit.Ago(in.LoadedAt, now), used, expires(in, now), pid, kit.OrDash(strings.TrimSpace(in.Engine + " " + in.EngineVersion)),
	}
}

func writeInstances(to io.Writer, r *resource.Overview, isWide bool) {
	isPlaced := slices.ContainsFunc(r.Instances, func(in resource.OverviewInstance) bool { return in.Placement != "" })
	shownOf := func(cells []string) (some []string) {
		for i, title := range psColumns {
			if (isWide || !slices.Contains(psWide, title)) && (isPlaced || title != "ON") {
				some = append(some, cells[i])
			}
		}
		return some
	}
	head := strings.Join(shownOf(psColumns), "\t")
	_ = terminal.WriteTable(to, head, r.Instances, func(in *resource.OverviewInstance) []string { // to memory
		return shownOf(psCells(in, r.Time))
	})
}

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

func of(isBounded bool, most string) string {
	if !isBounded {
		return ", no limit"
	}
	return " of " + most
}
