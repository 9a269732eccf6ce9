package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// verdict says whether a target was met.
type verdict string

const (
	met         verdict = "met"
	missed      verdict = "**missed**"
	noTarget    verdict = ""
	notMeasured verdict = "not measured"
)

func verdictOf(isMet bool) verdict {
	if isMet {
		return met
	}
	return missed
}

// table is what was measured.
type table []string

func (t *table) add(what, figure, target string, v verdict) {
	clean := strings.NewReplacer("|", `\|`, "\n", "<br>").Replace
	*t = append(*t, fmt.Sprintf("| %s | %s | %s | %s |\n", what, clean(strings.TrimSpace(figure)), target, v))
}

// compare adds a row about lmcaddy's figure and another, which at least or at most has a ratio.
func (t *table) compare(what, unit, other string, before, now float64, target string, ratio float64) {
	isMet := now/before >= ratio
	if target == "at most" {
		isMet = now/before <= ratio
	}
	t.add(what, fmt.Sprintf("%.3g %s %s, %.3g %s here: **%.2f**", before, unit, other, now, unit, now/before), fmt.Sprintf("%s %.2f", target, ratio), verdictOf(isMet))
}

func (t *table) inMarkdown(begin string) string {
	return begin + "\n\n| what | figure | target | |\n|---|---|---|---|\n" + strings.Join(*t, "")
}

func median[T float64 | time.Duration](all []T) T {
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3g s", d.Seconds()) }

func size(n int64) string { return fmt.Sprintf("%.2f GB", float64(n)/1e9) }

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
