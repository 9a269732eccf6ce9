package kit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lmcaddy/lmcaddy/internal/terminal"
)

// CanAsk reports whether there is a terminal to ask a question at.
func CanAsk(cmd *cobra.Command) bool { return terminal.Is(cmd.InOrStdin()) }

// AskLine asks a question on standard error, and returns the line that the user types, or the error of the context.
func AskLine(ctx context.Context, cmd *cobra.Command, question string) (string, error) {
	fmt.Fprint(cmd.ErrOrStderr(), question)
	answer := make(chan string, 1)
	go func() {
		line, _ := ReadLine(cmd.InOrStdin()) // no answer is an empty one
		answer <- strings.TrimSpace(line)
	}()
	select {
	case said := <-answer:
		return said, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// AskWhich shows numbered lines, asks for one of them, and returns the name that belongs to it. An error says that none was chosen.
func AskWhich(ctx context.Context, cmd *cobra.Command, question string, lines, names []string, none string) (string, error) {
	for i, line := range lines {
		terminal.Printf(cmd.ErrOrStderr(), "%3d  %s\n", i+1, line)
	}
	numbers := "1"
	if len(lines) > 1 {
		numbers = fmt.Sprintf("1-%d", len(lines))
	}
	said, err := AskLine(ctx, cmd, fmt.Sprintf("%s [%s, or Enter for none] ", question, numbers))
	switch n, failed := strconv.Atoi(said); {
	case err != nil:
		return "", err
	case said == "":
		return "", errors.New(none)
	case failed != nil || n < 1 || n > len(lines):
		return "", fmt.Errorf("%s isn't a number from 1 to %d", said, len(lines))
	default:
		return names[n-1], nil
	}
}

// IsYes reports whether an answer agrees. Everything else is a no.
func IsYes(answer string) bool {
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes")
}

// ReadLine reads a line without its end, and nothing of the next one, which others may read.
func ReadLine(in io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; {
		n, err := in.Read(b)
		switch {
		case n == 1 && b[0] == '\n':
			return strings.TrimSuffix(string(line), "\r"), nil
		case n == 1:
			if line = append(line, b[0]); len(line) > MaxQuestion {
				return "", errors.New("the line is too long")
			}
		case err == io.EOF && len(line) > 0:
			return string(line), nil
		case err != nil:
			return "", err
		}
	}
}

// MaxQuestion bounds what is read from standard input, in bytes.
const MaxQuestion = 16 << 20

// Confirm asks at the terminal whether something is to be deleted. An error says that it isn't.
func Confirm(ctx context.Context, cmd *cobra.Command, what string) error {
	if !CanAsk(cmd) {
		return errNoTerminal
	}
	answer, err := AskLine(ctx, cmd, "Delete "+what+"? [y/N] ")
	if err == nil && !IsYes(answer) {
		err = errors.New("nothing was deleted")
	}
	return err
}

var errNoTerminal = errors.New("nothing was deleted: there is no terminal to ask at. Give --yes to delete without being asked")
