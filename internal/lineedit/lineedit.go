// Package lineedit reads questions from a terminal: with editing, a history, and several lines in one question.
//
// A question has several lines if they are pasted, if Alt-Enter was pressed between them, if a line ends in a backslash, or between
// two lots of three double quotes.
package lineedit

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/reeflective/readline"
	"golang.org/x/term"
)

// ErrInterrupted is returned when Ctrl-C is pressed.
var ErrInterrupted = errors.New("interrupted")

// Editor reads from the process's terminal. It isn't safe for concurrent use.
type Editor struct {
	shell  *readline.Shell
	prompt string
	pasted pastes // into the question that is being typed

	// The states of the terminal while no question is read, and while one is; nil: there is none.
	usual *term.State
	raw   atomic.Pointer[term.State]
}

// New returns an editor with a history. complete returns what the word at the beginning of a line may be: the Tab key completes it.
func New(history *History, complete func(begun string) []string) *Editor {
	e := &Editor{shell: readline.NewShell()}
	sh := e.shell
	for name, value := range map[string]any{
		"enable-bracketed-paste": true,  // or a pasted text would be sent at its first newline
		"convert-meta":           false, // or é would be taken for Alt-i
		"cursor-position-probe":  false, // the prompt always begins at the left, and not every terminal answers
		"multiline-column":       true,
		"usage-hint-always":      false,
	} {
		_ = sh.Config.Set(name, value) // it never fails
	}
	sh.Prompt.Primary(func() string {
		e.noteRaw() // the library has just made it so
		return e.prompt
	})
	sh.Prompt.Secondary(func() string { return "" })
	sh.AcceptMultiline = func(line []rune) bool { return isWhole(string(line)) }
	sh.Completer = func(line []rune, cursor int) readline.Completions {
		begun := string(line[:cursor])
		if strings.ContainsAny(begun, " \n") {
			return readline.Completions{}
		}
		return readline.CompleteValues(complete(begun)...)
	}
	const newline, suspend = "insert-newline", "suspend"
	sh.Keymap.Register(map[string]func(){newline: func() { sh.Cursor().InsertAt('\n') }, suspend: e.suspend, "self-insert": e.insert})
	for _, keymap := range []string{"emacs", "emacs-standard", "vi-insert"} {
		for _, keys := range altEnter {
			_ = sh.Config.Bind(keymap, keys, newline, false) // it never fails
		}
		_ = sh.Config.Bind(keymap, ctrlZ, suspend, false)
	}
	sh.PasteTransformer = e.pasted.shorten
	sh.History.Delete()
	sh.History.Add("questions", wholeQuestions{history, &e.pasted})
	return e
}

// altEnter is what a terminal sends for Alt-Enter. The library takes the bytes of the first two also for the other two, which are what
// a terminal of 8 bits sends.
var altEnter = []string{"\x1b\r", "\x1b\n", "\u008d", "\u008a"}

const ctrlZ = "\x1a"

// Read reads a question. The error is [io.EOF] for Ctrl-D, and [ErrInterrupted] for Ctrl-C; with the latter, it returns what had been
// typed.
func (e *Editor) Read(prompt string) (string, error) {
	e.prompt, e.pasted = prompt, pastes{}
	e.raw.Store(nil)
	end, err := passInput()
	if err != nil {
		return "", err
	}
	defer end()
	defer e.watchSignals()()
	line, err := e.shell.Readline()
	switch {
	case errors.Is(err, readline.ErrInterrupt):
		return line, ErrInterrupted
	case err != nil:
		return "", err
	}
	return e.pasted.restore(Join(line)), nil
}

// insert inserts the character that was typed. The library's own command leaves out what is combined with it.
func (e *Editor) insert() {
	e.shell.History.SkipSave()
	var typed []rune
	for _, r := range e.shell.Keys.Caller() {
		if !unicode.IsControl(r) {
			typed = append(typed, r)
		}
	}
	e.shell.Cursor().InsertAt(typed...)
}

// noteRaw notes the state of the terminal at the first prompt of a question.
func (e *Editor) noteRaw() {
	if e.raw.Load() != nil {
		return
	}
	if state, err := term.GetState(int(os.Stdin.Fd())); err == nil {
		e.raw.Store(state)
	}
}

// Lines reads questions from what isn't a terminal, or from one without editing.
type Lines struct{ next func() (string, error) }

// NewLines returns a reader of questions, of lines that next returns without their ends.
func NewLines(next func() (string, error)) *Lines { return &Lines{next} }

// Read reads a question, with the error of the function that reads lines. A last question that isn't whole is lost.
func (l *Lines) Read() (string, error) {
	var all strings.Builder
	for {
		line, err := l.next()
		if err != nil {
			return "", err
		}
		all.WriteString(line)
		if isWhole(all.String()) {
			return Join(all.String()), nil
		}
		all.WriteByte('\n')
	}
}

// quotes are around a question of several lines.
const quotes = `"""`

// isWhole reports whether a question is complete, or else goes on with another line.
func isWhole(text string) bool {
	if after, begins := strings.CutPrefix(strings.TrimLeft(text, " \t\n"), quotes); begins {
		return strings.HasSuffix(strings.TrimRight(after, " \t\n"), quotes)
	}
	return !strings.HasSuffix(text, `\`)
}

// Join returns a question as it is meant: without the quotes around it, and without the backslashes at the ends of its lines.
func Join(text string) string {
	trimmed := strings.TrimSpace(text)
	if inner, begins := strings.CutPrefix(trimmed, quotes); begins && isWhole(trimmed) {
		return strings.Trim(strings.TrimSuffix(inner, quotes), "\n")
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\\\n", "\n"))
}

// IsEnd reports whether an error of Read says that the input has ended.
func IsEnd(err error) bool { return errors.Is(err, io.EOF) }
