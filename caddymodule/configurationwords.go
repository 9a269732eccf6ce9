package caddymodule

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"
)

// databaseOf is the option store for a PostgreSQL database, without its password; empty: there is none.
func databaseOf(address string) string {
	if address == "" {
		return ""
	}
	return "postgres " + withoutPassword(address)
}

// secretWord matches what libpq's other form of an address, and arguments of engines, have secrets as.
var secretWord = regexp.MustCompile(`(?i)((?:password|passwd|api-key|hf-token|token|secret)[= ]+)\S+`)

func withoutPassword(address string) string {
	if u, err := url.Parse(address); err == nil && u.Scheme != "" {
		for name := range u.Query() {
			if strings.Contains(strings.ToLower(name), "password") {
				u.RawQuery = ""
			}
		}
		return u.Redacted()
	}
	return secretWord.ReplaceAllString(address, "${1}xxxxx")
}

func secretArgs(args []string) string {
	return secretWord.ReplaceAllString(words(args), "${1}xxxxx")
}

// words are the arguments of an option.
func words(list []string) string {
	quoted := slices.Clone(list)
	for i, word := range quoted {
		if word == "" || strings.ContainsAny(word, " \t\n\"") {
			quoted[i] = strconv.Quote(word)
		}
	}
	return strings.Join(quoted, " ")
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func numberAt(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func bytesOf(n int64) string {
	if n == 0 {
		return ""
	}
	return humanize.Bytes(uint64(n)) //nolint:gosec // checked when it was read
}

func yes(on bool) string {
	if on {
		return "on"
	}
	return ""
}

func onOffAt(on *bool) string {
	switch {
	case on == nil:
		return ""
	case *on:
		return "on"
	}
	return "off"
}

func durationOf(d caddy.Duration) string {
	if d == 0 {
		return ""
	}
	return timeOf(time.Duration(d))
}

func durationAt(d *caddy.Duration) string {
	if d == nil {
		return ""
	}
	return timeOf(time.Duration(*d))
}

// timeOf writes a duration without units that are zero: "1h", not "1h0m0s".
func timeOf(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	said := d.String()
	if d%time.Minute == 0 {
		said = strings.TrimSuffix(said, "0s")
	}
	if d%time.Hour == 0 {
		said = strings.TrimSuffix(said, "0m")
	}
	return said
}
