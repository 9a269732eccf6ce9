package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

type transcriptOptions struct {
	thinking bool // with what the model thought
	plain    bool // for a terminal: as it was typed and answered
}

func writeTranscript(out io.Writer, c *resource.Conversation, o transcriptOptions) error {
	var text strings.Builder
	title := c.Title
	if title == "" {
		title = "A conversation"
	}
	terminal.Printf(&text, "# %s\n\n%s, %s, %s\n", kit.OneLine(title), c.Model, kit.Count(c.Turns, "turn"), c.Updated.Format(time.RFC3339))
	for i := range c.Responses {
		text.WriteByte('\n')
		if err := writeTurn(&text, &c.Responses[i], o); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func writeTurn(out io.Writer, r *resource.Response, o transcriptOptions) error {
	w := turnWriter{options: o}
	if r.System != nil && *r.System != "" {
		w.paragraph("System", *r.System)
	}
	if err := w.items(r.Input, "You"); err != nil {
		return err
	}
	if err := w.items(r.Output, "Model"); err != nil {
		return err
	}
	if r.Status == "incomplete" {
		w.aside("the answer was cut off")
	}
	_, err := io.WriteString(out, strings.Join(w.parts, "\n"))
	return err
}

// turnWriter gathers the paragraphs of a turn, each with a newline at its end.
type turnWriter struct {
	options transcriptOptions
	parts   []string
}

func (w *turnWriter) items(items []json.RawMessage, who string) error {
	for _, raw := range items {
		var item resource.Item
		if err := json.Unmarshal(raw, &item); err != nil {
			return fmt.Errorf("a stored conversation can't be read: %w", err)
		}
		w.item(&item, who)
	}
	return nil
}

func (w *turnWriter) item(item *resource.Item, who string) {
	switch item.Type {
	case "message":
		switch item.Role {
		case "assistant":
			who = "Model"
		case "developer":
			who = "Developer"
		}
		w.paragraph(who, item.Content)
	case "image", "audio":
		kind, _, _ := strings.Cut(strings.TrimPrefix(item.DataURL, "data:"), ";")
		w.aside(map[string]string{"image": "an image, ", "audio": "a recording, "}[item.Type] + kind)
	case "reasoning":
		if w.options.thinking {
			w.paragraph("Thinking", item.Content)
		}
	case "tool_call":
		w.aside("called " + kit.OneLine(item.Tool+compact(item.Arguments)))
		if item.Output != "" {
			w.aside("which returned " + kit.Cut(kit.OneLine(textOf(item.Output)), 0))
		}
	case "invalid_tool_call":
		w.aside("called " + kit.OneLine(item.Metadata.Tool+compact(item.Metadata.Arguments)) + " in vain: " + kit.OneLine(item.Reason))
	default:
		w.aside(strings.ReplaceAll(item.Type, "_", " ") + ": " + kit.Cut(kit.OneLine(item.Content), 0))
	}
}

func (w *turnWriter) paragraph(who, text string) {
	text = terminal.Text(strings.Trim(text, "\n"))
	switch {
	case !w.options.plain:
		text = "## " + who + "\n\n" + text
	case who == "You":
		text = "> " + text
	}
	w.parts = append(w.parts, text+"\n")
}

func (w *turnWriter) aside(text string) {
	if w.options.plain {
		w.parts = append(w.parts, "("+text+")\n")
		return
	}
	w.parts = append(w.parts, "*("+text+")*\n")
}

// The formats of an export.
const (
	formatMarkdown = "md"
	formatJSON     = "json"
)

func formatOf(path string) string {
	if strings.EqualFold(filepath.Ext(path), ".json") {
		return formatJSON
	}
	return formatMarkdown
}

// exportTo writes conversations to a new file that only the user can read, or replaces one. A device or a pipe is written as it is.
func exportTo(path string, c exported, format string, replaces bool) error {
	path = home.Expand(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular() && !replaces:
		return fmt.Errorf("%s already exists: choose another name, or remove it first", path)
	case err == nil && !info.Mode().IsRegular():
		var f *os.File
		if f, err = os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			err = errors.Join(c.write(f, format), f.Close())
		}
	default:
		err = atomicfile.WriteFile(path, 0o600, func(w io.Writer) error { return c.write(w, format) })
	}
	if err != nil {
		return fmt.Errorf("writing the conversation: %w", err)
	}
	return nil
}
