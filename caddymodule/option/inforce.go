package option

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/resource"
)

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
