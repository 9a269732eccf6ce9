package chat

import (
	"fmt"
	"io"
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

// faint returns a text in the colour of what isn't the answer.
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
