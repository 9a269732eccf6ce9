package logs

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
)

// secrets match what is a secret wherever it occurs: tokens of ours, of hubs and of others, and credentials as headers and URLs have them.
var secrets = regexp.MustCompile(`\b(sk-lm-|sk-ant-|sk-proj-|hf_|ghp_|github_pat_|glpat-|xox[abp]-)[A-Za-z0-9:_-]{4,}` +
	`|(?i)\b(bearer\s+)[^\s"',;]+|(://[^\s/@:"]*:)[^\s/@"]+@`)

// hints are parts of what secrets matches: without one of them, it isn't tried.
var hints = []string{"sk-", "hf_", "://", "earer", "EARER", "ghp_", "github_pat_", "glpat-", "xox"}

// Redact replaces secrets in a text. Nothing here logs any: this is for what other programs say, such as engines and MCP servers. What is
// kept is redacted, and what goes on to other logs.
func Redact(text string) string {
	if slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(text, hint) }) {
		text = secrets.ReplaceAllStringFunc(text, func(found string) string {
			m := secrets.FindStringSubmatch(found)
			if m[3] != "" {
				return m[3] + "…@"
			}
			return m[1] + m[2] + "…"
		})
	}
	return redactAssigned(text)
}

// RedactAny replaces secrets in a value that is or says a text, or in a list of such. It reports whether there were any; else the value is
// the same.
func RedactAny(value any) (redacted any, found bool) {
	switch v := value.(type) {
	case string:
		text := Redact(v)
		return text, text != v
	case []string:
		list := slices.Clone(v)
		for i, text := range v {
			list[i] = Redact(text)
			found = found || list[i] != text
		}
		if found {
			return list, true
		}
	case []any:
		list := slices.Clone(v)
		for i, item := range v {
			var inItem bool
			list[i], inItem = RedactAny(item)
			found = found || inItem
		}
		if found {
			return list, true
		}
	case error:
		if text, found := RedactAny(v.Error()); found {
			return text, true
		}
	case fmt.Stringer:
		if text, found := RedactAny(v.String()); found {
			return text, true
		}
	}
	return value, false
}

// redactAttr replaces secrets in an attribute, and reports whether there were any.
func redactAttr(a slog.Attr) (redacted slog.Attr, found bool) {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindString, slog.KindAny:
		value, found := RedactAny(a.Value.Any())
		if found {
			a.Value = slog.AnyValue(value)
		}
		return a, found
	case slog.KindGroup:
		members := slices.Clone(a.Value.Group())
		for i := range members {
			var inMember bool
			members[i], inMember = redactAttr(members[i])
			found = found || inMember
		}
		if found {
			a.Value = slog.GroupValue(members...)
		}
	}
	return a, found
}

// redactRecord replaces secrets in a record. One without any stays the same.
func redactRecord(r slog.Record) slog.Record { //nolint:gocritic // it is passed by value everywhere
	message := Redact(r.Message)
	found := message != r.Message
	attrs := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		a, inAttr := redactAttr(a)
		attrs = append(attrs, a)
		found = found || inAttr
		return true
	})
	if !found {
		return r
	}
	clean := slog.NewRecord(r.Time, r.Level, message, r.PC)
	clean.AddAttrs(attrs...)
	return clean
}

// redactAssigned replaces values that belong to the name of a secret, as in settings, headers, JSON and URLs.
func redactAssigned(text string) string {
	var redacted strings.Builder
	kept := 0 // bytes of text that are dealt with
	for at := 0; at < len(text); at++ {
		if text[at] != ':' && text[at] != '=' {
			continue
		}
		name := nameIn(text[kept:at])
		if !IsSecretName(name) {
			continue
		}
		start, end := valueIn(text, at+1)
		if strings.HasSuffix(name, "authorization") && slices.Contains(schemes, strings.ToLower(text[start:end])) {
			start, end = valueIn(text, end)
		}
		// A secret is neither short, nor a number with its unit, nor of other characters.
		value := text[start:end]
		number := strings.TrimLeft(value, "0123456789.")
		if len(value) < 6 || number != value && len(number) <= 3 || strings.ContainsAny(value, "<>|{…") {
			continue
		}
		redacted.WriteString(text[kept:start] + "…")
		kept, at = end, end-1
	}
	if kept == 0 {
		return text
	}
	return redacted.String() + text[kept:]
}

// schemes come before the secret of a header.
var schemes = []string{"basic", "bearer", "digest", "token"}

// secretNames are how the names of secrets end, in lower case. A token alone is one of a model's in most texts.
var secretNames = []string{
	"api_key", "api-key", "apikey", "access_key", "access-key", "secret_key", "secret-key", "private_key",
	"_token", "-token", "secret", "password", "passwd", "authorization",
}

const nameRunes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// nameIn returns the name at the end of a text, before spaces and quotes, in lower case; empty: it is surely none of secretNames.
func nameIn(text string) string {
	for text != "" && strings.IndexByte(" \"'\\", text[len(text)-1]) >= 0 {
		text = text[:len(text)-1]
	}
	if text == "" || strings.IndexByte("yntdYNTD", text[len(text)-1]) < 0 { // the last letters of secretNames
		return ""
	}
	return strings.ToLower(text[strings.LastIndexFunc(text, func(r rune) bool { return !strings.ContainsRune(nameRunes, r) })+1:])
}

// IsSecretName reports whether what has a name, in lower case, such as a header, is a secret.
func IsSecretName(name string) bool {
	return name != "" && slices.ContainsFunc(secretNames, func(end string) bool { return strings.HasSuffix(name, end) })
}

// valueIn returns where the value is that begins at an index, or after spaces and quotes there.
func valueIn(text string, from int) (start, end int) {
	start = len(text) - len(strings.TrimLeft(text[from:], " \"'\\"))
	length := strings.IndexAny(text[start:], " \t\n\"'\\,;&)}]")
	if length < 0 {
		return start, len(text)
	}
	return start, start + length
}
