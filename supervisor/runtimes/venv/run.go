package venv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

// lastWords is how many lines of standard error are kept.
const lastWords = 50

// run runs a program, and calls line with each line of its standard output. It returns the last lines of its standard error.
// If ctx ends, it stops the program and all that it has started, and returns ctx's cause.
func run(ctx context.Context, environment []string, line func(string), program string, arguments ...string) (words []string, err error) {
	c, err := child.Start(child.Options{
		Path: program, Args: arguments, Env: environment,
		Line: func(line string) {
			if words = append(words, line); len(words) > lastWords {
				words = words[1:]
			}
		},
	})
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	_ = c.Stdin.Close() // a program that asks a question gets no answer
	defer context.AfterFunc(ctx, c.Stop)()
	lines := bufio.NewReader(c.Stdout)
	for {
		text, err := lines.ReadString('\n')
		if text = strings.TrimSpace(text); line != nil && text != "" {
			line(text)
		}
		if err != nil {
			break
		}
	}
	<-c.Done()
	if ctx.Err() != nil {
		return words, context.Cause(ctx)
	}
	return words, c.Err()
}

// failure returns the error of a program with its last words.
func failure(err error, words []string) error {
	if said := reason(words); said != "" {
		return fmt.Errorf("%s (%w)", said, err)
	}
	if err == nil {
		return errors.New("it says nothing")
	}
	return err
}

// brokenConnection matches pip's warning about a failed connection. The cause may begin with the representation of an object.
var brokenConnection = regexp.MustCompile(`connection broken by ['"](?:.*>: |.*\(['"])?(.*?)['"]\)+['"]`)

// reason returns what matters in the last words of pip or Python: pip's errors, after the last failure to connect, which they
// don't mention, or else the last line.
func reason(words []string) string {
	var broken string
	var errs []string
	for _, word := range words {
		if found := brokenConnection.FindStringSubmatch(word); found != nil {
			broken = "the package index can't be reached: " + found[1]
		}
		text, isError := strings.CutPrefix(word, "ERROR: ")
		repeats := len(errs) > 0 && strings.HasPrefix(text, "No matching distribution") // the line before
		if isError && !repeats {
			errs = append(errs, text)
		}
	}
	switch {
	case broken != "":
		return strings.Join(append([]string{broken}, errs...), "; ")
	case len(errs) == 0 && len(words) > 0:
		return words[len(words)-1]
	default:
		return strings.Join(errs, "; ")
	}
}
