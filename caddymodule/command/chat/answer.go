package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// answerPrinter shows an answer as it is streamed: the message on out; calls of tools on notes; progress and thinking there,
// too, if that is a terminal.
type answerPrinter struct {
	out, notes io.Writer
	onScreen   bool       // out is a terminal
	terminal   bool       // notes is one
	colored    bool       // notes has colours
	columns    func() int // of notes
	waiting    *terminal.Progress
	thinking   bool // it is being shown, and its last line isn't ended
	begun      bool // something of the message was shown
	midLine    bool // the message's last line isn't ended

	response string // the id under which the beginning of the answer would be stored
	said     bool   // something of the answer was shown
}

func newAnswerPrinter(out, notes io.Writer) *answerPrinter {
	return &answerPrinter{
		out: out, notes: notes, onScreen: terminal.Is(out), terminal: terminal.Is(notes), colored: terminal.HasColors(notes),
		columns: func() int { return terminal.Columns(notes) }, waiting: terminal.NewProgress(notes),
	}
}

func (p *answerPrinter) show(e client.ChatEvent) error {
	switch e.Type {
	case "chat.start":
		p.response = e.Response
	case "model_load.progress":
		p.wait("loading the model", e.Progress)
	case "prompt_processing.progress":
		p.wait("reading the prompt", e.Progress)
	case "reasoning.delta":
		p.said = true
		p.think(e.Content)
	case "message.start":
		return p.endMessage()
	case "message.delta":
		p.said = true
		return p.say(e.Content)
	case "tool_call.start":
		return p.call(e.Tool)
	case "tool_call.arguments", "tool_call.success", "tool_call.failure", "error":
		return p.note(callNote(e))
	}
	return nil
}

func (p *answerPrinter) faint(text string) string {
	if !p.colored {
		return text
	}
	return terminal.Dim + text + terminal.Plain
}

func (p *answerPrinter) wait(forWhat string, progress float64) {
	if p.terminal {
		p.waiting.Update(forWhat, p.faint("%s %.0f%%"), forWhat, 100*progress)
	}
}

func (p *answerPrinter) think(text string) {
	if !p.terminal {
		return
	}
	p.waiting.End()
	text = terminal.Text(text)
	p.thinking = !strings.HasSuffix(text, "\n")
	fmt.Fprint(p.notes, p.faint(text))
}

// call shows that the model is writing the arguments of a call, which may take long.
func (p *answerPrinter) call(tool string) error {
	err := p.endMessage()
	p.endThinking()
	if p.terminal {
		p.waiting.Update("call", p.faint("calling %s…"), kit.OneLine(tool))
	}
	return err
}

// note shows a line between the model's messages.
func (p *answerPrinter) note(line string) error {
	err := p.endMessage()
	p.endThinking()
	line = kit.Cut(line, p.columns())
	if p.terminal {
		line = p.faint(line)
	}
	fmt.Fprintln(p.notes, line)
	return err
}

// endThinking ends the progress or the thinking that is being shown.
func (p *answerPrinter) endThinking() {
	p.waiting.End()
	if p.thinking {
		p.thinking = false
		fmt.Fprint(p.notes, "\n")
	}
}

// endMessage ends the last line of a message. The next one begins on a line of its own.
func (p *answerPrinter) endMessage() error {
	isOpen := p.midLine
	p.begun, p.midLine = false, false
	if !isOpen {
		return nil
	}
	_, err := io.WriteString(p.out, "\n")
	return err
}

func (p *answerPrinter) say(text string) error {
	p.endThinking()
	if !p.begun {
		text = strings.TrimLeft(text, "\n") // the lines between thinking and message
	}
	if p.onScreen {
		text = terminal.Text(text)
	}
	if text == "" {
		return nil
	}
	p.begun, p.midLine = true, !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(p.out, text)
	return err
}

func (p *answerPrinter) end() error {
	p.endThinking()
	return p.endMessage()
}

// integrations returns the MCP servers of the flag --mcp as a request names them.
func integrations(names []string) ([]string, error) {
	var all []string
	for _, name := range names {
		id := "mcp/" + strings.TrimPrefix(strings.TrimSpace(name), "mcp/")
		if id == "mcp/" {
			return nil, errors.New(`--mcp: a name is empty: give the names of servers in mcp.json, which "lmcaddy mcp ls" lists`)
		}
		if !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all, nil
}

// explainIntegrations adds to a refusal what the operator of the server can do.
func explainIntegrations(err error) error {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Status != http.StatusForbidden || refused.Hint != "" {
		return err
	}
	switch refused.Code {
	case "gate_closed":
		refused.Hint = `put it there and reload it, or start the server with "lmcaddy serve --allow plugin_mcp"`
	case "missing_scope":
		refused.Hint = `"lmcaddy token edit" adds a scope to a token, "lmcaddy token create --scopes inference,mcp.plugin" makes another`
	}
	return err
}

// callNote describes a call of a tool, its result, why it wasn't made, or the failure of its server, in one line.
func callNote(e client.ChatEvent) string {
	switch e.Type {
	case "tool_call.success":
		return kit.OneLine("← " + e.Tool + ": " + textOf(e.Output))
	case "tool_call.failure":
		return kit.OneLine("✗ " + e.Invalid.Tool + compact(e.Invalid.Arguments) + ": " + e.Reason)
	case "error":
		return kit.OneLine("✗ " + e.Error.Message)
	default:
		return kit.OneLine("→ " + e.Tool + compact(e.Arguments))
	}
}

// compact returns the arguments of a call in brackets, without spaces between them; nothing if there are none.
func compact(args json.RawMessage) string {
	if len(args) == 0 {
		return ""
	}
	var text bytes.Buffer
	if json.Compact(&text, args) != nil || text.String() == "{}" {
		return "()"
	}
	return "(" + text.String() + ")"
}

// textOf returns the texts of a tool's result, and of what isn't text its kind.
func textOf(output string) string {
	var content []struct{ Type, Text string }
	if json.Unmarshal([]byte(output), &content) != nil {
		return output
	}
	if len(content) == 0 {
		return "(nothing)"
	}
	parts := make([]string, len(content))
	for i, c := range content {
		if parts[i] = c.Text; c.Type != "text" {
			parts[i] = fmt.Sprintf("[%s]", c.Type)
		}
	}
	return strings.Join(parts, " ")
}
