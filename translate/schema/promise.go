// Package schema stands between the JSON schemas of clients and the engines. Nothing of a client's schema reaches an engine as it is:
// some make llama-server end, hang, or hold an answer to something else than they say.
//
// A schema is of one of two kinds. That of a tool that is only offered may lose what the engine can't express ([Offer]): it is never an
// error, since those who offer tools often can't change their schemas. A promise ([Promise]) is a schema that the answer has to match.
// Each of its keywords is rewritten to one that the engine holds the answer to, or the finished answer is checked for it ([Checker]),
// or it is an error.
//
// Both bound what an engine has to do ([Work]).
package schema

import (
	"cmp"
	"errors"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Promise is a schema that an answer has to match.
type Promise struct {
	// Schema is what an engine can hold the answer to. Its references lead to Definitions, members of "$defs" of a schema that has it in
	// it, separated by commas; it may be empty.
	Schema, Definitions string

	// Checker is for what Schema doesn't say; nil if it says all.
	Checker *Checker
}

// Options are how a promise is made.
type Options struct {
	Place       string // of the schema in the request, for errors
	Of          string // what it is the schema of, such as `the tool "f"`; may be empty
	Definitions string // what the names of its definitions begin with, letters and digits; "d" if it is empty
	IsObject    bool   // only objects match
	IsDefined   bool   // the engine is sent what [Offer] makes of it, and may take less heed of it than of the promise
}

// Promised returns the promise of a schema. The error names the place in it and the keyword.
func Promised(given gjson.Result, opt Options, work *Work) (*Promise, *translate.Error) {
	if opt.Definitions == "" {
		opt.Definitions = "d"
	}
	if len(given.Raw) > maxBytes {
		return nil, opt.tooLarge("bytes", maxBytes)
	}
	r := reader{left: maxValues + 1}
	original := r.read(given, maxDepth)
	switch {
	case r.isDeep:
		return nil, opt.tooLarge("levels", maxDepth)
	case r.left <= 0:
		return nil, opt.tooLarge("values", maxValues)
	}
	t := &tidier{}
	g := &grammar{
		document: newDocument(original, t), prefix: opt.Definitions,
		names: map[*node]int{}, open: map[*node]bool{}, same: map[*node]bool{},
	}
	root := g.root
	if opt.IsObject {
		root = g.merge(root, object().set("type", str("object")), "#")
	}
	made := g.schema(root, "#")
	if t.fault == nil && made == never {
		t.fail(cmp.Or(g.nothing, "#"), "can't be matched by anything")
	}
	if f := t.fault; f != nil {
		return nil, opt.invalid(f)
	}
	if !work.take(g.rules) || g.isTooLarge {
		return nil, translate.Refused("invalid_schema", opt.Place,
			"is too large with all that its references lead to: together with the request's other schemas it is "+
				"compiled to more than %d rules. Leave out optional properties, alternatives or tools.", maxWork)
	}
	p := &Promise{Schema: made.String(), Definitions: g.definitions()}
	if len(g.checked) > 0 || opt.IsDefined && g.isRewritten {
		checker, err := NewChecker([]byte(g.root.String()))
		if err != nil {
			return nil, opt.invalid(&fault{append(g.checked, "#")[0], "is checked in the finished answer, " +
				"but the schema can't be read for that: " + strings.TrimPrefix(err.Error(), "jsonschema: ")})
		}
		p.Checker = checker
	}
	return p, nil
}

// Whole returns Schema with its definitions.
func (p *Promise) Whole() string {
	if p.Definitions == "" {
		return p.Schema
	}
	start := strings.TrimSuffix(p.Schema, "}")
	if start != "{" {
		start += ","
	}
	return start + `"$defs":{` + p.Definitions + `}}`
}

// Mismatch returns the error of a finished answer that isn't what was promised, given as JSON; nil if it is.
func (p *Promise) Mismatch(answer []byte) *translate.Error {
	if p.Checker == nil {
		return nil
	}
	err := p.Checker.Check(answer)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrTooManySteps):
		err = errors.New("that isn't known, since " + err.Error())
	}
	return &translate.Error{
		Kind: translate.KindEngineFailed, Code: translate.FormatNotMet,
		Message: "The model's answer doesn't match the schema of the request: " + err.Error() +
			". The engine can't be held to all of it. Try again, or make the schema simpler.",
	}
}

func (o *Options) tooLarge(what string, most int) *translate.Error {
	return translate.Refused("invalid_schema", o.Place,
		"has more than %d %s, which is as much as is allowed. Make the schema simpler.", most, what)
}

func (o *Options) invalid(f *fault) *translate.Error {
	of := ""
	if o.Of != "" {
		of = " of " + o.Of
	}
	keyword := f.at[strings.LastIndexByte(f.at, '/')+1:]
	where := f.at + ` in "` + o.Place + `"`
	if keyword == "#" {
		return translate.Invalid("invalid_schema", o.Place, `"`+o.Place+`"`+of+` `+f.says+`.`)
	}
	return translate.Invalid("invalid_schema", o.Place, `"`+keyword+`" at `+where+of+` `+f.says+`.`)
}
