package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
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

// mcpTested is what `lmcaddy mcp test --json` prints.
type mcpTested struct {
	Label   string    `json:"label"`
	Seconds float64   `json:"seconds"` // until the tools were known
	Tools   []mcpTool `json:"tools"`
}

type mcpTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema,omitempty"`
}

func mcpTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Starts an MCP server, or connects to it, and prints its tools",
		Long: `Starts an MCP server of $LMCADDY_HOME/mcp.json, or connects to it, and prints its tools. The server
is this command's own: it isn't the one that a running lmcaddy has started. If it can't be used, the error
has the cause, and the last lines of its standard error.`,
		Example:           "  lmcaddy mcp test files\n  lmcaddy mcp test files --json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeMCP,
	}
	asJSON := cmd.Flags().Bool("json", false, "print JSON, with the tools' whole descriptions and schemas")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := kit.Interruptible(cmd)
		defer stop()
		notes := cmd.ErrOrStderr()
		label := strings.TrimPrefix(args[0], "mcp/")
		progress := terminal.NewProgress(notes)
		if terminal.Is(notes) {
			progress.Update("start", "connecting to %s…", kit.OneLine(label))
		}
		log := newTestLog()
		tested, err := testMCP(ctx, label, log)
		progress.End()
		switch {
		case ctx.Err() != nil:
			return errors.New("interrupted")
		case err != nil:
			return err
		}
		fmt.Fprint(notes, terminal.Text(log.warnings.String()))
		if *asJSON {
			return kit.WriteJSON(cmd.OutOrStdout(), tested)
		}
		return tested.write(cmd.OutOrStdout())
	}
	return cmd
}

// testMCP finds out the tools of a server of the home's mcp.json, with a connection of its own.
func testMCP(ctx context.Context, label string, log *testLog) (mcpTested, error) {
	dir, err := home.FromEnvironment()
	if err != nil {
		return mcpTested{}, err
	}
	pool := servers.NewPool(servers.Options{File: dir.MCP(), Log: slog.New(poolHandler{testLog: log})})
	defer pool.Close()
	begun := time.Now()
	session, err := pool.Plugin(ctx, label)
	if err != nil {
		return mcpTested{}, explainMCP(dir, label, err, log)
	}
	defer session.Release()
	tools, err := session.Tools(ctx)
	if err != nil {
		return mcpTested{}, explainMCP(dir, label, err, log)
	}
	tested := mcpTested{Label: label, Seconds: time.Since(begun).Round(time.Millisecond).Seconds(), Tools: []mcpTool{}}
	for _, t := range tools {
		tested.Tools = append(tested.Tools, mcpTool{t.Name, t.Description, t.Schema})
	}
	return tested, nil
}

func explainMCP(dir home.Dir, label string, err error, log *testLog) error {
	if unknown, ok := errors.AsType[*servers.UnknownError](err); ok {
		switch meant := nearest.DidYouMean(label, unknown.Known); {
		case len(unknown.Known) == 0:
			return fmt.Errorf("there is no MCP server %q: %s lists none", label, dir.MCP())
		case meant != "":
			return fmt.Errorf("there is no MCP server %q in %s%s", label, dir.MCP(), meant)
		default:
			return fmt.Errorf("there is no MCP server %q in %s; there are: %s", label, dir.MCP(), strings.Join(unknown.Known, ", "))
		}
	}
	failed, ok := errors.AsType[*servers.ConnectionError](err)
	if !ok || failed.Cause == nil {
		return err
	}
	text := fmt.Sprintf("%s (%v)", failed.Message, failed.Cause)
	if strings.Contains(failed.Message, "log says why") { // this is the log
		text = fmt.Sprintf("the MCP server %s can't be used: %v", label, failed.Cause)
	}
	said := log.said()
	if slices.ContainsFunc(said, func(line string) bool { return !strings.Contains(text, line) }) {
		text += "\nIts last lines on standard error:\n  " + strings.Join(said, "\n  ")
	}
	return errors.New(text)
}

// widestDescription bounds the description of a tool, in characters.
const widestDescription = 120

func (m *mcpTested) write(out io.Writer) error {
	text := terminal.NewPage(out)
	terminal.Printf(text, "%s has %s, found in %.2f s.\n", m.Label, kit.Count(len(m.Tools), "tool"), m.Seconds)
	if len(m.Tools) > 0 {
		_ = terminal.WriteTable(text, "\nTOOL\tDESCRIPTION", m.Tools, func(t *mcpTool) []string { // to memory
			return []string{kit.OneLine(t.Name), kit.OrDash(kit.Cut(kit.OneLine(t.Description), widestDescription))}
		})
	}
	return text.Flush()
}

// testLog keeps what a pool logs about the server of a test: the last lines of its standard error, and warnings.
type testLog struct {
	mu       sync.Mutex
	lines    []string
	warnings bytes.Buffer
	text     slog.Handler // writes the warnings
}

// mostLines is how many lines of a server are kept.
const mostLines = 20

func newTestLog() *testLog {
	l := new(testLog)
	l.text = slog.NewTextHandler(&l.warnings, nil)
	return l
}

func (l *testLog) said() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// poolHandler handles what a pool logs. What it logs about one server, it logs with an attribute that says which.
type poolHandler struct {
	*testLog
	isServers bool
}

func (poolHandler) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs returns the handler of what is about the server.
func (h poolHandler) WithAttrs([]slog.Attr) slog.Handler { return poolHandler{h.testLog, true} }

func (h poolHandler) WithGroup(string) slog.Handler { return h }

func (h poolHandler) Handle(ctx context.Context, r slog.Record) error {
	l := h.testLog
	l.mu.Lock()
	defer l.mu.Unlock()
	isLine := false
	r.Attrs(func(a slog.Attr) bool {
		if isLine = a.Key == "line"; isLine {
			l.lines = append(l.lines, kit.OneLine(a.Value.String()))
			l.lines = l.lines[max(0, len(l.lines)-mostLines):]
		}
		return !isLine
	})
	if isLine || !h.isServers || r.Level < slog.LevelWarn {
		return nil
	}
	r.Time = time.Time{} // which leaves it out
	return l.text.Handle(ctx, r)
}
