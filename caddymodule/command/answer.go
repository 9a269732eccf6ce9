package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/client"
)

// Escape sequences of terminals.
const (
	dim   = "\x1b[2m"
	plain = "\x1b[0m"
)

// answerPrinter shows an answer as it is streamed: the message on out; progress and thinking on notes, if that is a terminal.
type answerPrinter struct {
	out, notes io.Writer
	terminal   bool // notes is one
	waiting    *progressLine
	thinking   bool // it is being shown, and its last line isn't ended
	begun      bool // something of the message was shown
	midLine    bool // the message's last line isn't ended
}

func newAnswerPrinter(out, notes io.Writer) *answerPrinter {
	return &answerPrinter{out: out, notes: notes, terminal: isTerminal(notes), waiting: newProgressLine(notes)}
}

func (p *answerPrinter) show(e client.ChatEvent) error {
	switch e.Type {
	case "model_load.progress":
		p.wait("loading the model", e.Progress)
	case "prompt_processing.progress":
		p.wait("reading the prompt", e.Progress)
	case "reasoning.delta":
		p.think(e.Content)
	case "message.delta":
		return p.say(e.Content)
	}
	return nil
}

// wait shows the progress of something that the answer waits for.
func (p *answerPrinter) wait(forWhat string, progress float64) {
	if p.terminal {
		p.waiting.update(forWhat, fmt.Sprintf("%s%s %.0f%%%s", dim, forWhat, 100*progress, plain))
	}
}

func (p *answerPrinter) think(text string) {
	if !p.terminal {
		return
	}
	p.waiting.end()
	p.thinking = !strings.HasSuffix(text, "\n")
	fmt.Fprint(p.notes, dim+text+plain)
}

func (p *answerPrinter) say(text string) error {
	p.waiting.end()
	if p.thinking {
		p.thinking = false
		fmt.Fprint(p.notes, "\n")
	}
	if !p.begun {
		text = strings.TrimLeft(text, "\n") // the lines between thinking and message
	}
	if text == "" {
		return nil
	}
	p.begun, p.midLine = true, !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(p.out, text)
	return err
}

// end ends the last line.
func (p *answerPrinter) end() error {
	p.waiting.end()
	if p.thinking {
		fmt.Fprint(p.notes, "\n")
	}
	if !p.midLine {
		return nil
	}
	_, err := io.WriteString(p.out, "\n")
	return err
}
