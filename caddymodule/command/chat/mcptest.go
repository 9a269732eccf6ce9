package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/nearest"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
)

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
