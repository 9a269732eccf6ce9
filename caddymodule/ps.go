package caddymodule

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

// psTimeout bounds how long a running server may take to tell what is loaded. It needs a millisecond.
const psTimeout = 10 * time.Second

// psCommand makes `lmcaddy ps`, which asks the running server.
func psCommand(cmd *cobra.Command) {
	cmd.Long = `Shows the loaded models, what is loading or coming back, who waits, and what memory all that takes.

It asks the server that runs on $LMCADDY_HOME, over its admin endpoint. EXPIRES counts from the end of
an instance's last request: one that is in use has none.`
	cmd.Args = cobra.NoArgs
	cmd.SilenceUsage = true
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	address := cmd.Flags().String("address", "", "the admin endpoint, where the Caddyfile doesn't leave it in the home folder")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		body, err := askAdmin(cmd.Context(), *address, psPath)
		if err != nil {
			return err
		}
		if *asJSON {
			var out bytes.Buffer
			if err := json.Indent(&out, body, "", "  "); err != nil {
				return fmt.Errorf("the server's answer is no JSON: %w", err)
			}
			_, err := out.WriteTo(cmd.OutOrStdout())
			return err
		}
		var r report
		if err := json.Unmarshal(body, &r); err != nil {
			return fmt.Errorf("the server's answer can't be read: %w", err)
		}
		return r.write(cmd.OutOrStdout())
	}
}

// askAdmin asks a running server's admin endpoint for a path. The address is Caddy's notation; empty: the default.
func askAdmin(ctx context.Context, address, path string) ([]byte, error) {
	if address == "" {
		address = caddy.DefaultAdminListen
	}
	to, err := caddy.ParseNetworkAddress(address)
	if err != nil || to.PortRangeSize() > 1 {
		return nil, fmt.Errorf("%s is not the address of an admin endpoint: give one such as localhost:2019 or unix//run/admin.sock", address)
	}
	host := to.JoinHostPort(0)
	if to.IsUnixNetwork() {
		to.Host, _, _ = strings.Cut(to.Host, "|") // the socket's mode
		host = "127.0.0.1"                        // any will do
	}
	ctx, cancel := context.WithTimeout(ctx, psTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, to.Network, to.JoinHostPort(0))
		},
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, notRunning(to, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the server's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers with status %d: %s", resp.StatusCode, adminMessage(body))
	}
	return body, nil
}

// notRunning says what to do when nobody answers.
func notRunning(to caddy.NetworkAddress, err error) error {
	var failed *net.OpError
	if !errors.As(err, &failed) || failed.Op != "dial" {
		return fmt.Errorf("asking the server at %s: %w", to.JoinHostPort(0), err)
	}
	where := ""
	if dir, err := home.FromEnvironment(); err == nil {
		where = " on the home folder " + string(dir)
	}
	return fmt.Errorf("no lmcaddy seems to run%s (%w): start one with \"lmcaddy serve\" or \"lmcaddy run\", choose another home with LMCADDY_HOME, or name the admin endpoint with --address", where, failed)
}

// adminMessage is what an error of the admin endpoint says.
func adminMessage(body []byte) string {
	var e struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error != "" {
		return e.Error
	}
	return strings.TrimSpace(string(body))
}

// write shows the report to people.
func (r *report) write(out io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	if len(r.Instances) == 0 {
		_, _ = fmt.Fprintln(table, "No model is loaded.")
	} else {
		_, _ = fmt.Fprintln(table, "INSTANCE\tSTATUS\tIN USE\tCONTEXT\tCOUNTED\tRESIDENT\tLOADED\tLAST USED\tEXPIRES\tPID\tENGINE")
	}
	for i := range r.Instances {
		_, _ = fmt.Fprintln(table, strings.Join(r.Instances[i].row(r.Time), "\t"))
	}
	_ = table.Flush() // it writes to memory
	text.WriteString("\n")
	for _, c := range r.Coming {
		fmt.Fprintf(&text, "%s is started again %s: %s.\n", c.ID, when(c.At, r.Time), orText(c.Why, "its settings have changed"))
	}
	for _, f := range r.Failing {
		fmt.Fprintf(&text, "%s failed %s in a row, and may be tried again %s. The last time: %s.\n", f.Model, count(f.Count, "time"), when(f.Until, r.Time), f.Why)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Waiting)) {
		fmt.Fprintf(&text, "%s for %s: waiting.\n", count(r.Waiting[key], "request"), key)
	}
	fmt.Fprintf(&text, "%s, %s; memory counted %s, %s.\n", count(len(r.Instances), "instance"), bound(r.Limits.Instances > 0, fmt.Sprint(r.Limits.Instances)),
		bytesText(r.Memory), bound(r.Limits.Memory > 0, bytesText(r.Limits.Memory)))
	_, err := io.WriteString(out, text.String())
	return err
}

// row is the table's line of an instance.
func (in *reported) row(now time.Time) []string {
	return []string{
		in.ID, in.status(), fmt.Sprintf("%d/%d", in.InUse, in.Slots), fmt.Sprint(in.ContextLength), bytesText(in.Memory), bytesText(in.Resident),
		ago(in.LoadedAt, now), in.lastUsed(now), in.expires(now), orDash(strings.TrimPrefix(fmt.Sprint(in.PID), "0")),
		orDash(strings.TrimSpace(in.Engine + " " + in.EngineVersion)),
	}
}

func (in *reported) status() string {
	text := in.Status
	switch {
	case in.Progress != nil && *in.Progress > 0:
		text += fmt.Sprintf(" %.0f%%", *in.Progress*100)
	case in.Reason != "":
		text += " (" + string(in.Reason) + ")"
	case in.Renewing:
		text += ", to be renewed"
	}
	if in.Pinned {
		text += ", pinned"
	}
	return text
}

func (in *reported) lastUsed(now time.Time) string {
	if in.InUse > 0 {
		return "now"
	}
	return ago(in.LastUsed, now)
}

func (in *reported) expires(now time.Time) string {
	switch {
	case !in.Expires.IsZero():
		return when(in.Expires, now)
	case in.TTLSeconds == 0:
		return "never"
	default:
		return "-" // its time doesn't run now
	}
}

// when tells a moment that is to come, to the second.
func when(at, now time.Time) string {
	if left := at.Sub(now).Round(time.Second); left > 0 {
		return "in " + left.String()
	}
	return "now"
}

// ago tells a moment that has been, to the second.
func ago(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return max(now.Sub(at), 0).Round(time.Second).String() + " ago"
}

func bytesText(n int64) string {
	if n <= 0 {
		return "-"
	}
	return humanize.IBytes(uint64(n))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func bound(has bool, most string) string {
	if !has {
		return "without a bound"
	}
	return "at most " + most
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
