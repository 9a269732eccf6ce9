package server

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule"
	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/node"
)

// serverStatus is what `lmcaddy status --json` prints.
type serverStatus struct {
	Running   bool                 `json:"running"`
	Server    string               `json:"server"` // where it was asked
	Process   *caddymodule.Process `json:"process,omitempty"`
	Instances []resource.Instance  `json:"instances"`

	Remotes []resource.OverviewRemote `json:"remotes,omitempty"`
	Nodes   []resource.OverviewNode   `json:"nodes,omitempty"`
}

// statusPatience bounds how long a server may take to say that it runs, which costs it nothing.
const statusPatience = 10 * time.Second

// DefineStatus defines `lmcaddy status`.
func DefineStatus(cmd *cobra.Command) {
	cmd.Long = `Shows whether a server is running on $LMCADDY_HOME, where it serves, and which models are loaded; with --host,
only the last. The exit status is 1 if no server responds.`
	cmd.Example = "  lmcaddy status\n  lmcaddy status --json"
	cmd.Args = cobra.NoArgs
	to := kit.NewConnection(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		status := serverStatus{Instances: []resource.Instance{}}
		err := to.Talk(cmd, func(ctx context.Context, c *client.Client) error {
			status.Server = c.Address()
			return status.ask(ctx, c, to.Host == "")
		})
		switch {
		case *asJSON:
			if failed := kit.WriteJSON(cmd.OutOrStdout(), status); failed != nil {
				return failed
			}
			return err
		case err != nil:
			return err
		}
		return status.write(cmd.OutOrStdout(), time.Now())
	}
}

func (s *serverStatus) ask(ctx context.Context, c *client.Client, atHome bool) error {
	if atHome {
		s.Process = new(caddymodule.Process)
		if err := c.GetWithin(ctx, statusPatience, caddymodule.StatusPath, s.Process); err != nil {
			s.Process = nil
			return err
		}
	}
	models, err := c.Models(ctx)
	if err != nil {
		return err
	}
	s.Running = true
	var o resource.Overview
	if c.Get(ctx, "/api/v1/ps", &o) == nil { // a token may not have the scope for it
		s.Remotes, s.Nodes = o.Remotes, o.Nodes
	}
	for _, m := range models.Models {
		for _, in := range m.Instances {
			in.Config = resource.LoadConfig{ContextLength: in.Config.ContextLength} // ls --json has the rest
			s.Instances = append(s.Instances, in)
		}
	}
	return nil
}

func (s *serverStatus) write(out io.Writer, now time.Time) error {
	text := terminal.NewPage(out)
	if p := s.Process; p != nil {
		terminal.Printf(text, "lmcaddy %s is running on %s, as process %d, for %s.\n", p.Version, p.Home, p.PID,
			max(now.Sub(p.StartedAt), 0).Round(time.Second))
		if len(p.Addresses) > 0 {
			terminal.Printf(text, "It serves on %s.\n", strings.Join(p.Addresses, ", "))
		}
		if len(p.Pages) > 0 {
			terminal.Printf(text, "Its page for browsers is at %s.\n", p.Pages[0])
		}
		terminal.Printf(text, "Engines' sandbox: %s.\n", p.Sandbox)
		for _, e := range p.Engines {
			if e.Executable != "" && e.Sandbox != p.Sandbox {
				terminal.Printf(text, "Sandbox of %s: %s.\n", e.Name, e.Sandbox)
			}
		}
	} else {
		terminal.Printf(text, "A server answers at %s.\n", s.Server)
	}
	if len(s.Instances) == 0 {
		text.WriteString("No model is loaded.\n")
	}
	for i := range s.Nodes {
		terminal.Printf(text, "%s\n", nodeInWords(&s.Nodes[i]))
	}
	for i := range s.Remotes {
		terminal.Printf(text, "%s\n", remoteInWords(&s.Remotes[i], now))
	}
	if s.Process != nil {
		_ = terminal.WriteTable(text, "\nENGINE\tEXECUTABLE", s.Process.Engines, func(e *node.FoundEngine) []string { // to memory
			return []string{e.Name, kit.OrDash(e.Executable)}
		})
	}
	if len(s.Instances) > 0 {
		_ = terminal.WriteTable(text, "\nINSTANCE\tCONTEXT", s.Instances, func(in *resource.Instance) []string { // to memory
			return []string{in.ID, strconv.Itoa(in.Config.ContextLength)}
		})
	}
	return text.Flush()
}
