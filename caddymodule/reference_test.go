package caddymodule

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/node"
)

// referenceFile is made by this test with -update: from the syntax in the comments of what parses the Caddyfile, and from the
// comments of the fields that it sets.
const referenceFile = "../docs/caddyfile.md"

const referenceIntro = `# The Caddyfile

Every word that lmcaddy adds to Caddy's configuration language. This page is made from the comments in the code (` + "`make reference`" + `);
[Configuration](configuration.md) explains how the options work together, and has examples.

The app's options are in the block ` + "`lm`" + ` of the global options, the first block of a Caddyfile. ` + "`lm_api` and `lm_auth`" + ` are directives of a
site, and ` + "`permission lm`" + ` belongs to the global option ` + "`on_demand_tls`" + `. Durations are written like ` + "`90s`, `15m`, `12h` or `7d`" + `, sizes like
` + "`512MiB` or `20GB`" + `. A word that isn't here is an error, which names the words that there are.
`

// word is an option, or the head of a block of options.
type word struct {
	name, syntax, note string
	inner              []*word
}

// section is a block of options: where its syntax is written, and the type whose fields it sets.
type section struct {
	title, function, typ string
}

var sections = []section{
	{"The global option lm", "UnmarshalCaddyfile App", "App"},
	{"The directive lm_api", "parseHandler", "Handler"},
	{"The directive lm_auth", "parseAuth", "Auth"},
	{"permission lm", "UnmarshalCaddyfile Permission", "Permission"},
}

// blockTypes are the types of blocks within blocks.
var blockTypes = map[string]string{
	"store": "Store", "warm": "Warm", "engine": "Engine", "model": "Model", "hub": "Hub", "remote": "Remote", "cluster": "Cluster", "preset": "Preset", "trust": "Trusted",
}

// otherNames are the words whose fields in JSON have another name, other than a plural.
var otherNames = map[string]string{"trust": "trusted"}

// source has what is needed of this package's code.
type source struct {
	syntax map[string]string            // by function, and by method and type
	types  map[string]string            // comments of types
	fields map[string]map[string]string // comments of fields, by type and name in JSON
}

func readSource(t *testing.T) *source {
	t.Helper()
	s := &source{map[string]string{}, map[string]string{}, map[string]map[string]string{}}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			s.add(decl)
		}
	}
	return s
}

func (s *source) add(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		name := decl.Name.Name
		if decl.Recv != nil {
			if star, is := decl.Recv.List[0].Type.(*ast.StarExpr); is {
				name += " " + fmt.Sprint(star.X)
			}
		}
		s.syntax[name] = decl.Doc.Text()
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			typ, is := spec.(*ast.TypeSpec)
			if !is {
				continue
			}
			fields, is := typ.Type.(*ast.StructType)
			if !is {
				continue
			}
			s.types[typ.Name.Name] = decl.Doc.Text()
			s.fields[typ.Name.Name] = map[string]string{}
			for _, f := range fields.Fields.List {
				if f.Tag == nil {
					continue
				}
				name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
				s.fields[typ.Name.Name][name] = paragraph(f.Doc.Text())
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

// syntaxOf parses the indented lines of a comment.
func syntaxOf(t *testing.T, comment string) *word {
	t.Helper()
	root := &word{}
	open := []*word{root}
	for line := range strings.Lines(comment) {
		line, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "\t")
		if !indented {
			continue
		}
		text, note, _ := strings.Cut(strings.TrimSpace(line), "# ")
		text = strings.TrimSpace(text)
		if text == "}" {
			open = open[:len(open)-1]
			continue
		}
		syntax, opens := strings.CutSuffix(text, " {")
		w := &word{name: strings.Fields(syntax)[0], syntax: strings.TrimSpace(syntax), note: strings.TrimSpace(note)}
		top := open[len(open)-1]
		top.inner = append(top.inner, w)
		if opens {
			open = append(open, w)
		}
	}
	if len(open) != 1 || len(root.inner) != 1 {
		t.Fatalf("the comment has no syntax of one block:\n%s", comment)
	}
	return root.inner[0]
}

// repeated is the note at a word that may be given more than once.
const repeated = "may be repeated"

// reference writes the page, and counts the fields that it has described.
type reference struct {
	*strings.Builder
	t    *testing.T
	from *source
	used map[string]map[string]bool
}

// block writes a block of options: its syntax, a table of its words, and the blocks in it.
func (r *reference) block(level int, title, about, typ string, w *word) {
	fmt.Fprintf(r, "\n%s %s\n", strings.Repeat("#", level), title)
	if about != "" {
		fmt.Fprintf(r, "\n%s\n", about)
	}
	r.WriteString("\n")
	r.syntax(w)
	if typ == "Preset" {
		r.WriteString("\nA value that is JSON is taken as such, and any other is a string. Several values are an array.\n")
		return
	}
	r.WriteString("\n| word | meaning |\n|---|---|\n")
	var blocks []*word
	for _, inner := range w.inner {
		meaning := r.meaning(typ, inner.name)
		if strings.HasSuffix(inner.syntax, " on|off") {
			meaning = strings.NewReplacer("Default: true", "Default: on", "Default: false", "Default: off").Replace(meaning)
		}
		if len(inner.inner) > 0 {
			blocks = append(blocks, inner)
			meaning += " See [below](#" + anchorOf(inner) + ")."
		}
		if inner.note == repeated {
			meaning += " It may be repeated."
		}
		fmt.Fprintf(r, "| `%s` | %s |\n", strings.ReplaceAll(inner.syntax, "|", `\|`), meaning)
	}
	for _, inner := range blocks {
		r.block(level+1, heading(inner), r.meaning(typ, inner.name), blockTypes[inner.name], inner)
	}
}

// heading is the title of a block within a block.
func heading(w *word) string {
	if w.name == "engine" {
		return w.syntax
	}
	return w.name
}

func anchorOf(w *word) string { return strings.ReplaceAll(heading(w), " ", "-") }

// syntax writes the lines of a block, without those of the blocks in it.
func (r *reference) syntax(w *word) {
	fmt.Fprintf(r, "    %s {\n", w.syntax)
	for _, inner := range w.inner {
		more := ""
		if len(inner.inner) > 0 {
			more = " { … }"
		}
		fmt.Fprintf(r, "        %s%s\n", inner.syntax, more)
	}
	r.WriteString("    }\n")
}

// meaning is the comment of the field that a word sets.
func (r *reference) meaning(typ, name string) string {
	r.t.Helper()
	for _, field := range []string{name, name + "s", name + "es", otherNames[name]} {
		if text := r.from.fields[typ][field]; text != "" {
			if r.used[typ] == nil {
				r.used[typ] = map[string]bool{}
			}
			r.used[typ][field] = true
			return text
		}
	}
	r.t.Errorf("the word %q of %s sets no field that has a comment", name, typ)
	return ""
}

// makeReference returns the page, and which fields it describes.
func makeReference(t *testing.T) (string, map[string]map[string]bool, *source) {
	t.Helper()
	r := &reference{new(strings.Builder), t, readSource(t), map[string]map[string]bool{}}
	r.WriteString(referenceIntro)
	for _, s := range sections {
		_, does, _ := strings.Cut(paragraph(strings.Split(r.from.types[s.typ], "\n\n")[0]), " ")
		if s.typ == "App" {
			does = ""
		} else {
			does = strings.ToUpper(does[:1]) + does[1:]
		}
		r.block(2, s.title, does, s.typ, syntaxOf(t, r.from.syntax[s.function]))
	}
	return r.String(), r.used, r.from
}

// The page about the Caddyfile is as the comments say.
func TestReference_IsUpToDate(t *testing.T) {
	t.Parallel()
	got, used, from := makeReference(t)
	if *update {
		if err := os.WriteFile(referenceFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("it is stale: run make reference (-want +got):\n%s", diff)
	}
	inJSONOnly := map[string][]string{"App": {"gpu_memories"}, "Engine": {"options"}, "Hub": {"url"}, "Remote": {"url"}, "Cluster": {"url"}, "Store": {"postgres_url"}, "Trusted": {"user", "scopes"}, "Warm": {"off"}}
	for typ := range used {
		for _, field := range slices.Sorted(maps.Keys(from.fields[typ])) {
			if !used[typ][field] && !slices.Contains(inJSONOnly[typ], field) {
				t.Errorf("no word of the Caddyfile sets the field %s of %s", field, typ)
			}
		}
	}
}

// Every word that the parser knows is in the syntax, and the other way round.
func TestReference_HasEveryWord(t *testing.T) {
	t.Parallel()
	from := readSource(t)
	lm := syntaxOf(t, from.syntax["UnmarshalCaddyfile App"])
	known := map[string][]string{
		"lm": appOptions, "model": modelOptions, "hub": hubOptions, "remote": remoteOptions, "cluster": clusterOptions, "store": storeOptions, "warm": warmOptions,
	}
	for _, e := range node.Engines() {
		known["engine "+e.Name] = engineOptions(e)
	}
	check := func(name string, w *word) {
		got := map[string]bool{}
		for _, inner := range w.inner {
			got[inner.name] = true
		}
		want := known[name]
		if diff := cmp.Diff(slices.Sorted(slices.Values(want)), slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%s: the words of the parser and of its comment differ (-parser +comment):\n%s", name, diff)
		}
		delete(known, name)
	}
	check("lm", lm)
	for _, inner := range lm.inner {
		if name := heading(inner); len(inner.inner) > 0 && inner.name != "preset" {
			check(name, inner)
		}
	}
	known["lm_api"] = handlerOptions
	check("lm_api", syntaxOf(t, from.syntax["parseHandler"]))
	for name := range known {
		t.Errorf("the comment has no block %s", name)
	}
	syntax := map[string]string{}
	for _, inner := range lm.inner {
		syntax[inner.name] = inner.syntax
	}
	for _, c := range choices {
		if want := c.name + " " + strings.Join(c.values, "|"); syntax[c.name] != want {
			t.Errorf("the comment has %q, and the parser takes %q", syntax[c.name], want)
		}
	}
	if want := "allow " + strings.Join(Gates, "|") + "..."; syntax["allow"] != want {
		t.Errorf("the comment has %q, and the parser takes %q", syntax["allow"], want)
	}
}
