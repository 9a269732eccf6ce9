package chat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/caddymodule/command/kit"
	"github.com/lmcaddy/lmcaddy/internal/client"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/lineedit"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

type conversation struct {
	*chat

	client     *client.Client
	read       func(prompt string) (string, error)
	ahead      func() (end func(isDropped bool)) // keeps what is typed until it ends
	interrupts chan os.Signal
	typed      chan typedLine // one that is still being typed, of a terminal without editing
	saved      string         // the file that /save has written, which it replaces when it is named again
	warned     bool           // Ctrl-C was pressed at an empty prompt just now
}

var errLeave = errors.New("the conversation ends")

// converse sends what is typed, until the user leaves. The server stores the conversation.
func (ch *chat) converse(ctx context.Context, c *client.Client, keepsHistory bool) error {
	preparing, stop := kit.Interruptible(ch.cmd)
	err := ch.prepare(preparing, c)
	stop()
	if err != nil {
		if preparing.Err() != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
			return errors.New("interrupted")
		}
		return err
	}
	ch.request.Store, ch.request.StorePartial = true, true
	s := &conversation{chat: ch, client: c, interrupts: make(chan os.Signal, 1)}
	s.read, s.ahead = s.reader(keepsHistory)
	signal.Notify(s.interrupts, os.Interrupt)
	defer signal.Stop(s.interrupts)
	terminal.Printf(ch.cmd.ErrOrStderr(), "%s: /help for help, Ctrl-C stops an answer, Ctrl-D leaves\n", ch.request.Model)
	for err == nil {
		err = s.next(ctx)
	}
	if !errors.Is(err, errLeave) {
		return err
	}
	if ch.begun != "" {
		fmt.Fprintln(ch.cmd.ErrOrStderr(), kit.InWords("To go on: lmcaddy chat --continue "+shortID(ch.begun)))
	}
	return nil
}

// reader returns a function that reads a question, and one that keeps what is typed meanwhile: with editing, if input and output are
// terminals.
func (s *conversation) reader(keepsHistory bool) (read func(string) (string, error), ahead func() (end func(isDropped bool))) {
	notes := s.cmd.ErrOrStderr()
	if s.cmd.InOrStdin() != os.Stdin || !terminal.Is(os.Stdout) || terminal.IsDumb() {
		lines := lineedit.NewLines(s.line)
		return func(prompt string) (string, error) {
			fmt.Fprint(notes, prompt)
			return lines.Read()
		}, func() func(bool) { return func(bool) {} }
	}
	path := ""
	if dir, err := home.FromEnvironment(); err == nil && keepsHistory {
		path = filepath.Join(string(dir), "chat_history")
	}
	history, err := lineedit.OpenHistory(path)
	if err != nil {
		terminal.Println(notes, "What you asked before can't be read:", err)
	}
	editor := lineedit.New(history, completeSlash)
	return editor.Read, editor.Ahead
}

// typedLine is a line from a terminal without editing.
type typedLine struct {
	text string
	err  error
}

// line reads a line without editing. Ctrl-C interrupts that, and what is typed then is read by the next call.
func (s *conversation) line() (string, error) {
	if s.typed == nil {
		typed := make(chan typedLine, 1)
		go func() {
			text, err := kit.ReadLine(s.cmd.InOrStdin())
			typed <- typedLine{text, err}
		}()
		s.typed = typed
	}
	select {
	case got := <-s.typed:
		s.typed = nil
		return got.text, got.err
	case <-s.interrupts:
		fmt.Fprintln(s.cmd.ErrOrStderr()) // after ^C
		return "", lineedit.ErrInterrupted
	}
}

// next reads what is typed, and does it. It returns errLeave if the user leaves.
func (s *conversation) next(ctx context.Context) error {
	prompt := "> "
	if n := len(s.images); n > 0 {
		prompt = fmt.Sprintf("(%s) > ", kit.Count(n, "image"))
	}
	text, err := s.read(prompt)
	switch {
	case errors.Is(err, lineedit.ErrInterrupted) && text == "" && s.warned:
		return errLeave
	case errors.Is(err, lineedit.ErrInterrupted):
		if s.warned = text == ""; s.warned {
			fmt.Fprintln(s.cmd.ErrOrStderr(), "(Ctrl-C again, Ctrl-D or /bye to leave)")
		}
		return nil
	case lineedit.IsEnd(err):
		return errLeave
	case err != nil:
		return fmt.Errorf("reading from the terminal: %w", err)
	}
	s.warned = false
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if strings.HasPrefix(text, "/") {
		return s.command(ctx, text)
	}
	s.turn(ctx, strings.TrimSpace(text))
	return nil
}

// turn asks one question. An error is shown, and the conversation goes on.
func (s *conversation) turn(ctx context.Context, question string) {
	images := s.images
	s.request.Input = s.input(question)
	answering, isInterrupted, stop := s.interruptible(ctx)
	defer stop()
	p := newAnswerPrinter(s.cmd.OutOrStdout(), s.cmd.ErrOrStderr())
	end := s.ahead()
	result, err := s.ask(answering, s.client, p)
	end(isInterrupted())
	notes := s.cmd.ErrOrStderr()
	switch {
	case isInterrupted():
		note := "(stopped before the answer began; the question wasn't kept)"
		if p.said {
			note = "(stopped; the server hasn't kept what was said)"
		}
		if p.said && p.response != "" && s.isStored(ctx, p.response) {
			s.goneOn(p.response)
			note = "(stopped; what was said is kept)"
		} else {
			s.images = images
		}
		fmt.Fprintln(notes, terminal.Text(note))
	case err != nil:
		s.images = images
		fmt.Fprintln(notes, "Error:", terminal.Text(kit.InWords(s.to.InWords(s.client, err, s.request.Model).Error())))
		if errors.Is(err, client.ErrCut) {
			fmt.Fprintln(notes, kit.InWords("(the question wasn't kept: \"lmcaddy status\" shows whether the server runs, "+
				"and the up arrow brings the question back)"))
		}
		s.goneOn(result.Response)
	default:
		s.goneOn(result.Response)
	}
}

func (s *conversation) goneOn(response string) {
	if response == "" {
		return
	}
	if s.begun == "" {
		s.begun = response
	}
	s.request.Previous, s.request.System = response, nil // it is inherited
}

// interruptible returns a context that ends when the user presses Ctrl-C, a function that reports whether that has happened, and
// one that stops waiting for it.
func (s *conversation) interruptible(ctx context.Context) (_ context.Context, isInterrupted func() bool, stop func()) {
	select {
	case <-s.interrupts: // of before
	default:
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		select {
		case <-s.interrupts:
			cancel(lineedit.ErrInterrupted)
		case <-done:
		}
	}()
	return ctx, func() bool { return errors.Is(context.Cause(ctx), lineedit.ErrInterrupted) }, func() {
		close(done)
		cancel(nil)
	}
}

const (
	// storedWithin is how long an interrupted answer may take to be stored: the server has to notice that nobody listens any more.
	storedWithin = 5 * time.Second
	// storedPause is the time between two looks.
	storedPause = 20 * time.Millisecond
)

// isStored waits until an interrupted answer is stored.
func (s *conversation) isStored(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, storedWithin)
	defer cancel()
	for {
		if _, err := s.client.Response(ctx, id); err == nil {
			return true
		}
		select {
		case <-time.After(storedPause):
		case <-ctx.Done():
			return false
		}
	}
}

// resume finds the conversation to continue, and shows the end of it.
func (ch *chat) resume(ctx context.Context, c *client.Client) error {
	id := ch.goOn
	if id == lastConversation {
		list, err := c.Conversations(ctx, nil, "", "", 1)
		if err != nil {
			return err
		}
		if len(list.Conversations) == 0 {
			return errors.New("there is no conversation to continue yet: leave out --continue to begin one")
		}
		id = list.Conversations[0].ID
	}
	if !isConversationID(id) {
		return fmt.Errorf("--continue %s: that isn't the id of a conversation; \"lmcaddy conversations ls\" lists them", id)
	}
	found, err := c.Conversation(ctx, nil, id, false)
	if err != nil {
		return explainConversation(err)
	}
	if found.Dialect != resource.DialectNative {
		return fmt.Errorf("the conversation %s was held through another API, whose clients can continue it: "+
			"\"lmcaddy conversations show %s\" shows it", shortID(found.ID), shortID(found.ID))
	}
	ch.begun, ch.request.Previous = found.ID, found.Last
	if ch.request.Model == "" {
		ch.request.Model = found.Model
	}
	if !terminal.Is(ch.cmd.InOrStdin()) {
		return nil
	}
	terminal.Printf(ch.cmd.ErrOrStderr(), "Going on with %q, %s so far.\n", found.Title, kit.Count(found.Turns, "turn"))
	last, err := c.Response(ctx, found.Last)
	if err != nil {
		return err
	}
	return writeTurn(ch.cmd.ErrOrStderr(), &last, transcriptOptions{plain: true})
}
