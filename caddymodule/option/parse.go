package option

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/internal/nearest"
)

// Parse reads the block of the current word, whose name is for errors, into the struct that to points to. The word has no arguments.
func Parse(d *caddyfile.Dispenser, name string, to any) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	p := parser{Dispenser: d}
	return p.lines(name, reflect.ValueOf(to))
}

type parser struct {
	*caddyfile.Dispenser
	open []any // the blocks that are being read, from the outermost
}

func (p *parser) lines(name string, block reflect.Value) error {
	p.open = append(p.open, block.Interface())
	defer func() { p.open = p.open[:len(p.open)-1] }()
	if err := p.check(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for nesting := p.Nesting(); p.NextBlock(nesting); {
		f, err := p.field(name, block)
		if err == nil {
			p.noteTwice(name, f, seen)
			err = p.value(f, block.Elem().Field(f.index))
		}
		if err == nil {
			err = p.check()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// noteTwice notes a word, or a block of a name, that stands in a block already: the later one counts, or adds to the earlier one.
func (p *parser) noteTwice(block string, f Field, seen map[string]bool) {
	word := f.Word
	if f.Type.Kind() == reflect.Map {
		ahead := *p.Dispenser
		word = strings.Join(append([]string{word}, ahead.RemainingArgs()[:min(1, p.CountRemainingArgs())]...), " ")
	} else if f.MayBeRepeated() {
		return
	}
	if to, ok := p.open[0].(Noter); ok && seen[word] {
		to.Note(fmt.Sprintf("%s stands twice in the block %s, at %s:%d: leave one of them", word, block, p.File(), p.Line()))
	}
	seen[word] = true
}

func (p *parser) check() error {
	for _, block := range slices.Backward(p.open) {
		if c, ok := block.(Checker); ok {
			if err := c.Check(); err != nil {
				return p.WrapErr(err)
			}
		}
	}
	return nil
}

// field returns the option of the current word. If there are two, the second is the one with a name before its value.
func (p *parser) field(name string, block reflect.Value) (found Field, _ error) {
	word := p.Val()
	var words []string
	for _, f := range Fields(block.Type().Elem()) {
		isNamed := f.Type.Kind() == reflect.Map && !f.IsBlock()
		if f.Word == word && (found.Word == "" || isNamed && p.CountRemainingArgs() > 1) {
			found = f
		}
		if f.Word != "" {
			words = append(words, f.Word)
		}
	}
	if found.Word != "" {
		return found, nil
	}
	slices.Sort(words)
	words = slices.Compact(words)
	if like := nearest.Of(word, words); len(like) > 0 {
		return found, p.Errf("%s: unknown option %q (did you mean %s?)", name, word, strings.Join(like, ", "))
	}
	return found, p.Errf("%s: unknown option %q; there are: %s", name, word, strings.Join(words, ", "))
}

// value reads the arguments of the current word into an option, and its block if it has one.
func (p *parser) value(f Field, to reflect.Value) error {
	if u, ok := reflect.TypeAssert[caddyfile.Unmarshaler](to.Addr()); ok {
		return u.UnmarshalCaddyfile(p.Dispenser)
	}
	if f.IsBlock() {
		return p.block(f, to)
	}
	args := p.RemainingArgs()
	if to.Kind() == reflect.Bool {
		to.SetBool(true)
		if len(args) > 0 {
			return p.ArgErr()
		}
		return nil
	}
	isList := to.Kind() == reflect.Slice
	switch several := strings.Contains(f.Args, "..."); {
	case to.Kind() == reflect.Map && len(args) == 2:
		item := reflect.New(to.Type().Elem()).Elem()
		if to.IsNil() {
			to.Set(reflect.MakeMap(to.Type()))
		}
		err := p.wrap(f.setText(item, args[1]))
		to.SetMapIndex(reflect.ValueOf(args[0]), item)
		return err
	case to.Kind() == reflect.Map, len(args) == 0, len(args) > 1 && !several:
		return p.ArgErr()
	case isList && !f.MayBeRepeated():
		to.SetZero()
	}
	if !isList {
		return p.wrap(f.setText(to, args[0]))
	}
	for _, arg := range args {
		item := reflect.New(to.Type().Elem()).Elem()
		if err := f.setText(item, arg); err != nil {
			return p.WrapErr(err)
		}
		to.Set(reflect.Append(to, item))
	}
	return nil
}

func (p *parser) block(f Field, to reflect.Value) error {
	name := f.Word
	switch to.Kind() {
	case reflect.Map:
		var key string
		if !p.Args(&key) || p.NextArg() {
			return p.ArgErr()
		}
		if k, ok := reflect.TypeAssert[Keyer](to); ok {
			var err error
			if key, err = k.Key(key); err != nil {
				return p.Errf("%s: %v", name, err)
			}
		}
		if to.IsNil() {
			to.Set(reflect.MakeMap(to.Type()))
		}
		at := to.MapIndex(reflect.ValueOf(key))
		if !at.IsValid() || at.IsNil() {
			at = reflect.New(to.Type().Elem().Elem())
			to.SetMapIndex(reflect.ValueOf(key), at)
		}
		return p.lines(name+" "+key, at)
	case reflect.Slice:
		to.Set(reflect.Append(to, reflect.Zero(to.Type().Elem())))
		to = to.Index(to.Len() - 1)
	case reflect.Pointer:
		if !to.IsNil() {
			return p.Errf("%s: it is given already", name)
		}
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	if h, ok := reflect.TypeAssert[Header](to.Addr()); ok {
		if err := h.Head(p.RemainingArgs()); err != nil {
			return p.Errf("%s: %v", name, err)
		}
		return p.lines(name, to.Addr())
	}
	var head string
	if !p.Args(&head) || p.NextArg() {
		return p.ArgErr()
	}
	to.Field(headOf(to.Type()).index).SetString(head)
	return p.lines(name+" "+head, to.Addr())
}

// wrap adds the line of the Caddyfile to an error.
func (p *parser) wrap(err error) error {
	if err == nil {
		return nil
	}
	return p.WrapErr(err)
}

func (f *Field) setText(to reflect.Value, text string) error {
	if err := f.checkWord(text); err != nil {
		return err
	}
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](to.Addr()); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("%s: %w", f.Word, err)
		}
		return nil
	}
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
		to = to.Elem()
	}
	read, err := f.read(to.Type(), text)
	if err == nil {
		to.Set(reflect.ValueOf(read).Convert(to.Type()))
	}
	return err
}
