package faults

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// result is a row of the table.
type result struct {
	fault
	rounds        int
	before, after *column
}

func (r result) String() string {
	text := "after: " + r.after.String()
	if r.before != nil {
		text = "before: " + r.before.String() + "; " + text
	}
	return fmt.Sprintf("%s, %d rounds; %s", r.name, r.rounds, text)
}

// String returns what clients saw, the largest of what was measured, and the number of rounds with failed checks.
func (c *column) String() string {
	if c == nil {
		return ""
	}
	words := []string{fmt.Sprintf("%d ok", c.seen.of(answered))}
	if told := c.seen.errors(); told != "" {
		words = append(words, told)
	}
	for _, o := range []outcome{lost, cut, hung, wrong, unclear} {
		if n := c.seen.of(o); n > 0 {
			words = append(words, fmt.Sprintf("**%d %s**", n, o))
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(c.seen.figures)) {
		words = append(words, fmt.Sprintf("at most %.1f %s", c.seen.figures[unit], unit))
	}
	if c.broken > 0 {
		words = append(words, fmt.Sprintf("**%d rounds broken**", c.broken))
	}
	return strings.Join(words, ", ")
}

// report writes the table, as Markdown.
func report(w io.Writer, results []result, withBefore bool) {
	printf := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	printf("\nWhat clients saw (seed %d). ok: answered to the end; 5xx code, event code: told by a status, or by the last event of a stream;", *seed)
	printf("raced: sent on an idle connection while the server closed it, which clients repeat; lost: no answer otherwise; cut: ended without a word; hung: nothing in %s; unclear: an error that doesn't say what to do.\n", deadline)
	if withBefore {
		printf("| fault | rounds | before | after |\n|---|---|---|---|")
	} else {
		printf("| fault | rounds | clients saw |\n|---|---|---|")
	}
	for _, r := range results {
		switch {
		case r.after == nil:
		case withBefore:
			printf("| %s | %d | %s | %s |", r.name, r.rounds, r.before, r.after)
		default:
			printf("| %s | %d | %s |", r.name, r.rounds, r.after)
		}
	}
}
