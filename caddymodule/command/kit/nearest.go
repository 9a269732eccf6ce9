package kit

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// CheckValue returns an error about a flag's value that isn't one of those that there are.
func CheckValue(flag, value string, known []string) error {
	if slices.Contains(known, value) {
		return nil
	}
	said := fmt.Sprintf("--%s %s", flag, value)
	if near := DidYouMean(value, known); near != "" {
		return fmt.Errorf("%s%s The values are %s", said, near, strings.Join(known, ", "))
	}
	return fmt.Errorf("%s: give one of %s", said, strings.Join(known, ", "))
}

// Nearest returns the known name that is most like another, or "" if none is.
func Nearest(name string, known []string) string {
	length := utf8.RuneCountInString(name)
	best, least := "", max(2, length/3)+1
	if length < 4 {
		least = 2 // of so few characters, two others make another word
	}
	for _, k := range known {
		if d := distance([]rune(strings.ToLower(name)), []rune(strings.ToLower(k))); d < least {
			best, least = k, d
		}
	}
	return best
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

// DidYouMean is the end of a sentence about a wrong name, with the known name that is most like it; empty if none is.
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return ": did you mean " + near + "?"
	}
	return ""
}
