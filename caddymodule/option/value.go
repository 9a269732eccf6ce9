package option

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/dustin/go-humanize"
)

func (f *Field) read(t reflect.Type, text string) (any, error) {
	switch t {
	case reflect.TypeFor[caddy.Duration]():
		d, err := caddy.ParseDuration(text)
		switch {
		case err != nil || d < 0:
			return nil, fmt.Errorf("%s: %q is not a time, such as 60m, 12h or 0", f.Word, text)
		case d == 0 && f.Type.Kind() != reflect.Pointer && f.tag.Get("min") != "0":
			return nil, fmt.Errorf("%s: it must be longer than 0: for a patience almost without end, give a long one, such as 24h", f.Word)
		}
		return d, nil
	case reflect.TypeFor[Size]():
		most, err := humanize.ParseBytes(cmp.Or(f.tag.Get("max"), "1EiB"))
		if err != nil {
			return nil, err
		}
		n, err := humanize.ParseBytes(text)
		if err != nil || n < 1 || n >= most || IsBare(text, n) {
			return nil, fmt.Errorf("%s: %q is not a size between 1 byte and %s with its unit, such as 64MiB", f.Word, text,
				humanize.IBytes(most))
		}
		return n, nil
	}
	switch t.Kind() {
	case reflect.Int:
		n, err := strconv.Atoi(text)
		if err == nil && f.checkInt(n) == nil {
			return n, nil
		}
		bound := ""
		if least := f.tag.Get("min"); least != "" {
			bound = " of at least " + least
		}
		return nil, fmt.Errorf("%s: %q is not a whole number%s", f.Word, text, bound)
	case reflect.Bool:
		return text == "on", nil
	default:
		return text, nil
	}
}

func (f *Field) checkInt(n int) error {
	least, err := strconv.Atoi(f.tag.Get("min"))
	if err == nil && n < least {
		return fmt.Errorf("%s must be at least %d", f.Word, least)
	}
	return nil
}

// IsBare reports whether a size lacks a unit that was surely meant: sizes here are never a few bytes.
func IsBare(text string, bytes uint64) bool {
	return bytes < 1<<20 && strings.Trim(text, "0123456789") == ""
}

// Check checks the options of a block that may have come from JSON, and of the blocks in it.
func Check(block any) error { return check(reflect.ValueOf(block).Elem(), "") }

func check(block reflect.Value, prefix string) error {
	for _, f := range Fields(block.Type()) {
		f.Word = prefix + cmp.Or(f.Word, f.Name)
		v := block.Field(f.index)
		err := eachBlock(f, v, check)
		if !f.IsBlock() {
			err = f.checkValue(v)
		}
		if err != nil {
			return err
		}
	}
	if c, ok := reflect.TypeAssert[Checker](block.Addr()); ok {
		return c.Check()
	}
	return nil
}

// eachBlock calls do with each block in an option, and what errors about its options begin with. It stops at an error.
func eachBlock(f Field, v reflect.Value, do func(block reflect.Value, prefix string) error) (err error) {
	switch {
	case !f.IsBlock():
	case v.Kind() == reflect.Map:
		for key, at := range v.Seq2() {
			if !at.IsNil() && err == nil { // null in JSON
				err = do(at.Elem(), f.Word+" "+key.String()+": ")
			}
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			err = cmp.Or(err, do(v.Index(i), f.Word+": "))
		}
	case v.Kind() == reflect.Struct:
		err = do(v, f.Word+" ")
	case !v.IsNil():
		err = do(v.Elem(), f.Word+" ")
	}
	return err
}

// checkValue checks a value that JSON has set, by the rules for a Caddyfile. The decoder of JSON has checked its type.
func (f *Field) checkValue(v reflect.Value) error {
	v = reflect.Indirect(v)
	switch {
	case !v.IsValid():
		return nil
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if err := f.checkWord(v.Index(i).String()); err != nil {
				return err
			}
		}
	case v.Kind() == reflect.String && v.String() != "":
		return f.checkWord(v.String())
	case !v.CanInt() || v.IsZero():
	case v.Int() < 0 && f.tag.Get("min") != "" || v.Int() < 0 && v.Kind() == reflect.Int64:
		return errors.New(f.Word + " must not be negative")
	case v.Kind() == reflect.Int:
		return f.checkInt(int(v.Int()))
	}
	return nil
}

// checkWord returns an error if a value must be one of some words, and isn't.
func (f *Field) checkWord(text string) error {
	if values := f.Values(); values != nil && !slices.Contains(values, text) {
		return fmt.Errorf("%s: %q is not one of: %s", f.Word, text, strings.Join(values, ", "))
	}
	return nil
}

// SetDefaults sets the options of a block that aren't set to their defaults, and those of the blocks in it.
func SetDefaults(block any) error { return setDefaults(reflect.ValueOf(block).Elem(), "") }

func setDefaults(block reflect.Value, _ string) error {
	for _, f := range Fields(block.Type()) {
		v := block.Field(f.index)
		err := eachBlock(f, v, setDefaults)
		if !f.IsBlock() && f.Default() != "" && v.IsZero() {
			err = f.setText(v, f.Default())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// text returns a value as a Caddyfile has it; empty: it isn't set.
func (f *Field) text(v reflect.Value) string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return ""
		}
		return f.format(v.Elem())
	}
	if v.IsZero() {
		return ""
	}
	return f.format(v)
}

func (f *Field) format(v reflect.Value) string {
	if s, ok := reflect.TypeAssert[fmt.Stringer](v); ok {
		return s.String()
	}
	var text string
	switch t := v.Type(); {
	case t == reflect.TypeFor[caddy.Duration]():
		text = Duration(time.Duration(v.Int()))
	case t == reflect.TypeFor[Size]():
		text = humanize.Bytes(uint64(v.Int())) //nolint:gosec // checked when it was read
	case v.CanInt():
		text = strconv.FormatInt(v.Int(), 10)
	case v.Kind() == reflect.Bool && v.Bool():
		text = "on"
	case v.Kind() == reflect.Bool:
		text = "off"
	case v.Kind() == reflect.Slice:
		var list []string
		for i := range v.Len() {
			list = append(list, v.Index(i).String())
		}
		text = Words(list)
	case v.Kind() == reflect.Map:
		var list []string
		for key, item := range v.Seq2() {
			list = append(list, key.String()+" "+f.format(item))
		}
		slices.Sort(list)
		text = strings.Join(list, ", ")
	default:
		text = v.String()
	}
	switch f.tag.Get("secret") {
	case "all":
		return "(set)"
	case "password":
		return WithoutPassword(text)
	case "args":
		return secretWord.ReplaceAllString(text, "${1}xxxxx")
	default:
		return text
	}
}

// Words are the arguments of an option, in quotes where they need some.
func Words(list []string) string {
	quoted := slices.Clone(list)
	for i, word := range quoted {
		if word == "" || strings.ContainsAny(word, " \t\n\"") {
			quoted[i] = strconv.Quote(word)
		}
	}
	return strings.Join(quoted, " ")
}

// Duration writes a duration without units that are zero: "1h", not "1h0m0s".
func Duration(d time.Duration) string {
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

// secretWord matches what libpq's other form of an address, and arguments of engines, have secrets as.
var secretWord = regexp.MustCompile(`(?i)((?:password|passwd|api-key|hf-token|token|secret)[= ]+)\S+`)

// WithoutPassword returns an address without the password in it.
func WithoutPassword(address string) string {
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
