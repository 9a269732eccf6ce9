package chat

import (
	"context"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
)

// DefineMCP defines `lmcaddy mcp` with its sub-commands. They work on the home folder, with a server running or not.
func DefineMCP(cmd *cobra.Command) {
	cmd.Long = `Lists and tests the MCP servers whose tools models may use: those in $LMCADDY_HOME/mcp.json.

A chat uses them with "lmcaddy chat MODEL --mcp NAME", or by the field integrations of the API, if the
server allows it (allow plugin_mcp).`
	cmd.Example = "  lmcaddy mcp ls\n  lmcaddy mcp test files"
	cmd.AddCommand(mcpList(), mcpTest())
}

// mcpServers is what `lmcaddy mcp ls --json` prints.
type mcpServers struct {
	File    string      `json:"file"`
	Allowed *bool       `json:"allowed"` // by the running server; null: none is running
	Servers []mcpServer `json:"servers"`
}

type mcpServer struct {
	Label   string `json:"label"`
	ID      string `json:"id"`   // as requests name it
	Kind    string `json:"kind"` // stdio, http or sse; empty if the entry is wrong
	Command string `json:"command,omitempty"`
	URL     string `json:"url,omitempty"` // without a user and a query, which may be secrets
	Error   string `json:"error,omitempty"`
}

func describeMCPServer(c servers.Config) mcpServer {
	s := mcpServer{Label: c.Label, ID: "mcp/" + c.ID(), Command: c.Command}
	switch {
	case c.Err != nil:
		return mcpServer{Label: c.Label, ID: s.ID, Error: c.Err.Error()}
	case c.Command != "":
		s.Kind = "stdio"
		return s
	case c.Type != "":
		s.Kind = c.Type
	default:
		s.Kind = "http"
	}
	if u, err := url.Parse(c.URL); err == nil {
		s.URL = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	return s
}

func mcpList() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "Lists the MCP servers, and whether they may be used",
		Long:    "Lists the MCP servers of $LMCADDY_HOME/mcp.json, and whether the running server allows chats to use them.",
		Args:    cobra.NoArgs,
		Example: "  lmcaddy mcp ls\n  lmcaddy mcp ls --json",
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, err := home.FromEnvironment()
		if err != nil {
			return err
		}
		configs, err := servers.Read(dir.MCP())
		if err != nil {
			return err
		}
		list := mcpServers{File: dir.MCP(), Allowed: allowsPlugins(cmd.Context(), dir), Servers: []mcpServer{}}
		for _, c := range configs {
			list.Servers = append(list.Servers, describeMCPServer(c))
		}
		if *asJSON {
			return kit.WriteJSON(cmd.OutOrStdout(), list)
		}
		return list.write(cmd.OutOrStdout())
	}
	return cmd
}

// settingsPatience bounds how long the running server is asked for its settings.
const settingsPatience = 5 * time.Second

// allowsPlugins reports whether the home's server lets chats use the servers of mcp.json; nil if it can't be asked.
func allowsPlugins(ctx context.Context, dir home.Dir) *bool {
	ctx, cancel := context.WithTimeout(ctx, settingsPatience)
	defer cancel()
	c := client.OnSocket(dir.Socket())
	defer c.Close()
	var settings struct {
		Allow struct {
			Plugins bool `json:"plugin_mcp"`
		} `json:"allow"`
	}
	if c.Get(ctx, "/api/v1/settings", &settings) != nil {
		return nil
	}
	return &settings.Allow.Plugins
}

func (l *mcpServers) write(out io.Writer) error {
	text := terminal.NewPage(out)
	if len(l.Servers) == 0 {
		terminal.Printf(text,
			"There are no MCP servers. %s may list some: {\"mcpServers\": {\"name\": {\"command\": \"…\", \"args\": […]}}}\n", l.File)
	} else {
		_ = terminal.WriteTable(text, "NAME\tID\tKIND\tCOMMAND OR URL", l.Servers, func(s *mcpServer) []string { // to memory
			return []string{kit.OneLine(s.Label), s.ID, kit.OrDash(s.Kind), kit.OrDash(kit.OneLine(s.Command + s.URL))}
		})
	}
	head := "\nThese can't be used:\n"
	for _, s := range l.Servers {
		if s.Error != "" {
			text.WriteString(head)
			terminal.Printf(text, "%s: %s\n", kit.OneLine(s.Label), kit.OneLine(s.Error))
			head = ""
		}
	}
	switch {
	case l.Allowed == nil:
	case *l.Allowed:
		text.WriteString("\nThe running server allows chats to use them.\n")
	default:
		text.WriteString(kit.InWords("\nThe running server doesn't allow chats to use them: " +
			"put \"allow plugin_mcp\" into the option lm of its Caddyfile, or start it with \"lmcaddy serve --allow plugin_mcp\".\n"))
	}
	return text.Flush()
}

func completeMCP(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	dir, err := home.FromEnvironment()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	configs, _ := servers.Read(dir.MCP())             // without them, nothing is completed
	before := typed[:strings.LastIndex(typed, ",")+1] // names that are complete
	var names []string
	for _, c := range configs {
		name := c.Label
		if kit.OneLine(name) != name || strings.ContainsAny(name, ", ") {
			name = c.ID()
		}
		if strings.HasPrefix(name, typed[len(before):]) {
			names = append(names, before+name)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
