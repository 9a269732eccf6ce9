// Package nearest finds the known name that somebody means by a wrong one.
package nearest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// longest bounds the names that are compared, in bytes: anybody may send any name.
const longest = 256

// Most is how many names a message has at most.
const Most = 3

// Of returns those of the known names that may be meant by another, the likeliest first, but [Most] at most.
func Of(name string, known []string) []string {
	length := utf8.RuneCountInString(strings.TrimLeft(name, "-"))
	most := max(2, length/3)
	if length < 5 {
		most = 1 // of so few characters, two others make another word
	}
	if len(name) > longest {
		return nil
	}
	var like []string
	for _, k := range ranked(name, known) {
		if k.far <= most && len(like) < Most {
			like = append(like, k.name)
		}
	}
	return like
}

// Listed lists known names, of more than [Most] only those that are most like a wrong one.
func Listed(name string, known []string) string {
	more := len(known) - Most
	if more <= 0 {
		return strings.Join(known, ", ")
	}
	first := ranked(name, known)
	return fmt.Sprintf("%s, %s, %s, and %d more", first[0].name, first[1].name, first[2].name, more)
}

// DidYouMean is the end of a sentence about a wrong name, with the known names that may be meant; empty if there are none.
func DidYouMean(name string, known []string) string {
	like := Of(name, known)
	if len(like) == 0 {
		return ""
	}
	meant := strings.Join(like, ", ")
	if last := strings.LastIndex(meant, ", "); len(like) > 1 {
		meant = meant[:last] + " or " + meant[last+2:]
	}
	return ": did you mean " + meant + "?"
}

type rank struct {
	name string
	far  int
}

// ranked returns the known names, those first that are most like another.
func ranked(name string, known []string) []rank {
	name = strings.ToLower(name[:min(len(name), longest)])
	all := make([]rank, len(known))
	for i, k := range known {
		all[i] = rank{k, far(name, strings.ToLower(k[:min(len(k), longest)]))}
	}
	slices.SortStableFunc(all, func(a, b rank) int { return cmp.Compare(a.far, b.far) })
	return all
}

// far is the distance of a name from a known one, or from the part of that behind a publisher. One that is the beginning of it is near, above
// all up to the end of a word.
func far(name, known string) int {
	_, bare, _ := strings.Cut(known, "/")
	least := distance([]rune(name), []rune(known))
	for _, whole := range []string{known, bare} {
		if whole == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(whole, name); ok && len(name) > 2 {
			if strings.ContainsRune("-@:_. ", rune((rest + " ")[0])) {
				return 0
			}
			least = min(least, 1)
		}
		least = min(least, distance([]rune(name), []rune(whole)))
	}
	return least
}

// distance is how many characters have to be added, removed, replaced or exchanged with the next one to make one text of the other.
func distance(a, b []rune) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
