// Package option makes the options of a Caddyfile from the fields of structs. A field is the one place where an option is defined: its
// type and its tags say how it is read, checked and shown, and its comment is its documentation. The tags are
//
//	json       its name in JSON
//	word       its name in a Caddyfile, where that differs; "-": it has none
//	args       what follows the name, as it is documented: "<n>", "<name...>" for several, "finish|stop" for one of these words
//	head       for a field of a block: it stands for the arguments of the block itself, such as a URL
//	default    its value if it isn't set, as a Caddyfile has it
//	otherwise  what happens if it isn't set, in words, where that is decided at run time
//	example    a value for people to start from
//	min, max   the least number, and the largest size
//	secret     what of it isn't shown: "all", "password" for that of a URL, "args" for what looks like a secret among arguments
//	repeat     "replaces" if the values of a later line take the place of earlier ones, instead of being added
//
// A field may be a string, a number, a switch (*bool), a lone word (bool), a duration, a [Size], a type that unmarshals text, a list of
// these, or a map of them by a name. A pointer, or a tag min of 0, is needed where 0 means something. A struct is a block; a map or a list
// of structs are blocks that may be repeated. Any other type reads itself, with UnmarshalCaddyfile.
package option

import (
	"cmp"
	"encoding"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

// Size is a number of bytes. In a Caddyfile it has a unit.
type Size int64

// Header is a block with several arguments, or with optional ones.
type Header interface {
	// Head reads the arguments of the block. If the block is given more than once, it is called each time.
	Head(args []string) error
	// String returns the arguments as they are shown, without secrets; empty: the block isn't set.
	String() string
}

// Checker is a block whose options are checked together. In a Caddyfile this is done after each line, so that the error names it.
type Checker interface{ Check() error }

// Noter is an outermost block that is told what is surely meant otherwise, as a sentence without a full stop.
type Noter interface{ Note(text string) }

// Keyer is a map of blocks whose names aren't arbitrary.
type Keyer interface {
	// Key returns a name in its normal form.
	Key(name string) (string, error)
}

// Field is an option, or a block of options.
type Field struct {
	Word   string // in a Caddyfile; empty: it has none
	Name   string // in JSON
	Args   string // what follows the word
	Type   reflect.Type
	IsHead bool // see the tag head

	index int
	tag   reflect.StructTag
}

// Default returns the value that an option has if it isn't set, as a Caddyfile has it; empty: none, or it is decided at run time.
func (f *Field) Default() string { return f.tag.Get("default") }

// Otherwise returns what is in force if an option isn't set, for people; empty: nothing worth mentioning.
func (f *Field) Otherwise() string {
	if said := f.tag.Get("otherwise"); said != "" {
		return said
	}
	return f.Default()
}

// Values returns the words of which an option's value must be one; nil: it may have others.
func (f *Field) Values() []string {
	args := strings.TrimSuffix(f.Args, "...")
	if args == "" || strings.Contains(args, "<") {
		return nil
	}
	return strings.Split(args, "|")
}

// Example returns a value of an option that isn't its default.
func (f *Field) Example() string {
	if said := f.tag.Get("example"); said != "" {
		return said
	}
	for _, value := range f.Values() {
		if value != f.Default() {
			return value
		}
	}
	return ""
}

// IsBlock reports whether the option is a block of others, or several blocks.
func (f *Field) IsBlock() bool {
	t := elem(f.Type)
	return t.Kind() == reflect.Struct && !reflect.PointerTo(f.Type).Implements(reflect.TypeFor[caddyfile.Unmarshaler]()) &&
		!reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// MayBeRepeated reports whether each line with the option adds to those before it.
func (f *Field) MayBeRepeated() bool {
	return (f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map) && f.tag.Get("repeat") != "replaces"
}

// Fields returns the options of a block, in the order of its fields.
func Fields(block reflect.Type) []Field {
	var all []Field
	for i := range block.NumField() {
		f := block.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || f.Tag.Get("word") == "-" {
			continue
		}
		field := Field{Word: name, Name: name, Args: f.Tag.Get("args"), Type: f.Type, index: i, tag: f.Tag}
		if word, ok := f.Tag.Lookup("word"); ok {
			field.Word = strings.TrimSuffix(word, "-")
		}
		switch head, ok := f.Tag.Lookup("head"); {
		case ok:
			field.Args, field.IsHead, field.Word = head, true, ""
		case f.Type == reflect.TypeFor[*bool]():
			field.Args = "on|off"
		case field.Args == "" && field.IsBlock():
			field.Args = headOf(elem(f.Type)).Args
		}
		all = append(all, field)
	}
	return all
}

// Of returns an option of a block by its word. It panics if there is none.
func Of(block any, word string) Field {
	all := Fields(reflect.TypeOf(block))
	return all[slices.IndexFunc(all, func(f Field) bool { return f.Word == word })]
}

// Parse reads a single value of the option from its text, into what to points to.
func (f *Field) Parse(text string, to any) error { return f.setText(reflect.ValueOf(to).Elem(), text) }

// headOf returns the field of a block that stands for its arguments; the zero value: none does.
func headOf(block reflect.Type) (head Field) {
	for i := range block.NumField() {
		if args, ok := block.Field(i).Tag.Lookup("head"); ok {
			return Field{Args: args, IsHead: true, Type: block.Field(i).Type, index: i, tag: block.Field(i).Tag}
		}
	}
	return head
}

// elem returns the type of what a pointer, a list or a map has.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t
}

// InForce returns the options of a block, as people see them, sorted: those that are set, and what is in force for others that have a
// default. Blocks that may be repeated are left out.
func InForce(block any) []resource.Setting {
	all := inForce(reflect.Indirect(reflect.ValueOf(block)), "")
	slices.SortFunc(all, func(a, b resource.Setting) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Set returns the options of a block that are set, sorted.
func Set(block any) []resource.Setting {
	return slices.DeleteFunc(InForce(block), func(s resource.Setting) bool { return s.Source == resource.FromDefault })
}

func inForce(block reflect.Value, prefix string) []resource.Setting {
	all := []resource.Setting{}
	for _, f := range Fields(block.Type()) {
		v := block.Field(f.index)
		isBlock := f.IsBlock()
		if isBlock && f.MayBeRepeated() || f.Word == "" && (!f.IsHead || prefix != "") {
			continue
		}
		name := prefix + cmp.Or(f.Word, f.Name)
		s := resource.Setting{Name: name, Value: f.text(v), Source: resource.FromFile}
		if isBlock {
			inner := v
			if v.Kind() == reflect.Pointer {
				if inner = v.Elem(); v.IsNil() {
					inner = reflect.Zero(v.Type().Elem())
				}
			}
			if head := headOf(inner.Type()); !reflect.PointerTo(inner.Type()).Implements(reflect.TypeFor[Header]()) {
				s.Value = head.text(inner.Field(head.index))
			}
			all = append(all, inForce(inner, name+" ")...)
		}
		i := slices.IndexFunc(all, func(other resource.Setting) bool { return other.Name == name }) // two fields of one word
		switch {
		case i >= 0 && s.Value == "":
		case i >= 0 && all[i].Source == resource.FromFile:
			all[i].Value += ", " + s.Value
		case i >= 0:
			all[i] = s
		case s.Value == "" && f.Otherwise() == "":
		case s.Value == "":
			s.Value, s.Source = f.standIn(), resource.FromDefault
			all = append(all, s)
		default:
			all = append(all, s)
		}
	}
	return all
}

// standIn is what is shown for an option that isn't set.
func (f *Field) standIn() string {
	if f.Default() == "" || f.tag.Get("otherwise") != "" || f.IsBlock() {
		return f.Otherwise()
	}
	v := reflect.New(f.Type).Elem()
	if err := f.setText(v, f.Default()); err != nil || v.IsZero() {
		return f.Default()
	}
	return f.text(v)
}
