package caddymodule

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// referenceFile is made by this test with -update, from the fields of the options and their comments.
const referenceFile = "../docs/caddyfile.md"

const referenceIntro = `# The Caddyfile

Every word that lmcaddy adds to Caddy's configuration language. This page is made from the comments in the code (` + "`make reference`" + `);
[Configuration](configuration.md) explains how the options work together, and has examples.

The app's options are in the block ` + "`lm`" + ` of the global options, the first block of a Caddyfile. ` + "`lm_api` and `lm_auth`" + ` are directives of a
site, and ` + "`permission lm`" + ` belongs to the global option ` + "`on_demand_tls`" + `. Durations are written like ` + "`90s`, `15m`, `12h` or `7d`" + `, sizes like
` + "`512MiB` or `20GB`" + `. A word that isn't here is an error, which names the words that there are.
`

// optionsFile has the options for the page's settings. It is made with the other.
const optionsFile = "../web/src/core/options.ts"

// section is a part of the page: a block that is in no other.
type section struct {
	title, syntax string
	typ           reflect.Type
}

var sections = []section{
	{"The global option lm", "lm", reflect.TypeFor[config.Settings]()},
	{"The directive lm_api", "lm_api", reflect.TypeFor[Handler]()},
	{"The directive lm_auth", "lm_auth", reflect.TypeFor[Auth]()},
	{"permission lm", "permission lm", reflect.TypeFor[Permission]()},
}

// presetSyntax is that of the only block that has no struct.
const presetSyntax = `

### preset

    preset <name> {
        system_prompt <text>
        <field> <value...>
    }
`

// comments are the comments of types, and of their fields as type and name in JSON.
type comments map[string]string

func readComments(t *testing.T, dirs ...string) comments {
	t.Helper()
	all := comments{}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range file.Decls {
				if types, is := decl.(*ast.GenDecl); is {
					all.add(types)
				}
			}
		}
	}
	return all
}

func (c comments) add(types *ast.GenDecl) {
	for _, spec := range types.Specs {
		typ, is := spec.(*ast.TypeSpec)
		if !is {
			continue
		}
		c[typ.Name.Name] = paragraph(strings.Split(types.Doc.Text(), "\n\n")[0])
		fields, is := typ.Type.(*ast.StructType)
		if !is {
			continue
		}
		for _, f := range fields.Fields.List {
			if f.Tag != nil {
				name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
				c[typ.Name.Name+" "+name] = paragraph(f.Doc.Text())
			}
		}
	}
}

// quoted matches a value in quotes.
var quoted = regexp.MustCompile(`"([a-z0-9_*]+)"`)

// paragraph joins the lines of a comment, for a cell of a table, and marks values as code.
func paragraph(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return quoted.ReplaceAllString(strings.ReplaceAll(text, "|", `\|`), "`$1`")
}

// reference writes the page.
type reference struct {
	strings.Builder
	t    *testing.T
	from comments
}

// block writes a block of options: its syntax, a table of its words, and the blocks in it.
func (r *reference) block(level int, title, about, syntax string, typ reflect.Type) {
	fmt.Fprintf(r, "\n%s %s\n", strings.Repeat("#", level), title)
	if about != "" {
		fmt.Fprintf(r, "\n%s\n", about)
	}
	fmt.Fprintf(r, "\n    %s {\n", syntax)
	var lines, rows []string
	var blocks []option.Field
	for _, f := range option.Fields(typ) {
		line := strings.TrimSpace(f.Word + " " + f.Args)
		isOther := strings.Contains(r.String()+strings.Join(lines, "\n"), "\n        "+f.Word+" ") && f.Type.Kind() == reflect.Map && !f.IsBlock()
		if f.Word == "" || isOther {
			continue
		}
		meaning := r.meaning(typ, &f)
		if f.IsBlock() || f.Word == "preset" {
			blocks, meaning = append(blocks, f), meaning+" See [below](#"+f.Word+")."
			lines = append(lines, "\n        "+line+" { … }")
		} else {
			lines = append(lines, "\n        "+line)
		}
		if f.MayBeRepeated() {
			meaning += " It may be repeated."
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s |\n", strings.ReplaceAll(line, "|", `\|`), meaning))
	}
	r.WriteString(strings.TrimPrefix(strings.Join(lines, ""), "\n") + "\n    }\n\n| word | meaning |\n|---|---|\n" + strings.Join(rows, ""))
	for _, f := range blocks {
		if f.Word == "preset" {
			r.WriteString(strings.TrimPrefix(presetSyntax, "\n"))
			continue
		}
		inner := f.Type
		for inner.Kind() != reflect.Struct {
			inner = inner.Elem()
		}
		r.block(level+1, f.Word, r.meaning(typ, &f), strings.TrimSpace(f.Word+" "+f.Args), inner)
	}
}

// meaning is the comment of a field, and its default.
func (r *reference) meaning(typ reflect.Type, f *option.Field) string {
	r.t.Helper()
	text := r.from[typ.Name()+" "+f.Name]
	if text == "" {
		r.t.Errorf("the option %s of %s has no comment", f.Word, typ.Name())
	}
	if said := f.Otherwise(); said != "" {
		text += " Default: " + said + "."
	}
	return text
}

// makeReference returns the page.
func makeReference(t *testing.T, from comments) string {
	t.Helper()
	r := &reference{t: t, from: from}
	r.WriteString(referenceIntro)
	for _, s := range sections {
		_, does, _ := strings.Cut(from[s.typ.Name()], " ")
		if s.syntax == "lm" {
			does = ""
		} else {
			does = strings.ToUpper(does[:1]) + does[1:]
		}
		r.block(2, s.title, does, s.syntax, s.typ)
	}
	return r.String()
}

// firstPart matches a comment up to the end of its first sentence, or to a colon after a word.
var firstPart = regexp.MustCompile(`^.*?[^0-9][.:](?: |$)`)

// makeOptions returns the file for the page's settings: what each option that GET /api/v1/settings lists is for, and an example of its value.
func makeOptions(from comments) string {
	var text strings.Builder
	text.WriteString(`// make reference makes this file from the comments of the options.

/** What can be set in a Caddyfile: what an option is for, and an example of its value. */
export interface Option {
	about: string;
	example: string;
}

/** The options of the block lm, by the names in GET /api/v1/settings. A second word is an option of a block within it. */
export const options: Record<string, Option> = {
`)
	var add func(typ reflect.Type, prefix string)
	add = func(typ reflect.Type, prefix string) {
		for _, f := range option.Fields(typ) {
			isOther := strings.Contains(text.String(), fmt.Sprintf("\t%q:", prefix+f.Word))
			if f.Example() != "" && f.Word != "" && !isOther {
				about := firstPart.FindString(strings.NewReplacer("`", "", `\|`, "|").Replace(from[typ.Name()+" "+f.Name]))
				fmt.Fprintf(&text, "\t%q: { about: %q, example: %q },\n", prefix+f.Word, strings.TrimRight(about, ".: "), f.Example())
			}
			if f.IsBlock() && !f.MayBeRepeated() && f.Type.Kind() == reflect.Struct {
				add(f.Type, f.Word+" ")
			}
		}
	}
	add(reflect.TypeFor[config.Settings](), "")
	text.WriteString("};\n")
	return text.String()
}

// The page about the Caddyfile, and that of the settings, are as the comments say.
func TestReference_IsUpToDate(t *testing.T) {
	t.Parallel()
	from := readComments(t, ".", "config")
	for file, got := range map[string]string{referenceFile: makeReference(t, from), optionsFile: makeOptions(from)} {
		testkit.Golden(t, file, []byte(got))
	}
}
