package lmcaddy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/lmcaddy/lmcaddy"

type row struct {
	pkg     string
	imports []string
}

// mayImport lists what each package of the module may import of the others, from the top down. A name that ends in /... stands
// for a package and all below it. docs/architecture.md explains the layout.
var mayImport = []row{
	{"", []string{"caddymodule/command"}},
	{"cmd/lmcaddy", []string{"caddymodule/command", "internal/early"}},
	{"caddymodule/command", []string{"caddymodule", "caddymodule/command/chat", "caddymodule/command/kit", "caddymodule/command/models", "caddymodule/command/server", "node/...", "internal/..."}},
	{"caddymodule/command/chat", []string{"api/...", "caddymodule/command/kit", "caddymodule/command/models", "mcploop/servers", "node/...", "warm", "internal/..."}},
	{"caddymodule/command/models", []string{"api/...", "caddymodule", "caddymodule/command/kit", "catalog", "node/...", "internal/..."}},
	{"caddymodule/command/server", []string{"caddymodule", "caddymodule/command/kit", "caddymodule/config", "caddymodule/doctor", "api/...", "mcploop/servers", "node/...", "store", "supervisor", "supervisor/process", "supervisor/runtimes", "internal/..."}},
	{"caddymodule/command/kit", []string{"node/...", "supervisor/runtimes", "internal/..."}},
	{"caddymodule/command/kit/kittest", nil},
	{"caddymodule/doctor", []string{"caddymodule", "caddymodule/config", "node/...", "store", "supervisor/process", "supervisor/schedule", "supervisor/runtimes", "internal/..."}},
	{"caddymodule/config", []string{"caddymodule/option", "node/...", "warm", "mcploop/servers", "catalog/...", "store", "supervisor/process", "supervisor/schedule", "supervisor/remote", "translate/openai", "translate/request", "internal/..."}},
	{"caddymodule/option", []string{"internal/..."}},
	{"caddymodule", []string{"caddymodule/config", "caddymodule/option", "api/...", "node/...", "warm", "mcploop/servers", "catalog/...", "store", "supervisor", "supervisor/process", "supervisor/schedule", "supervisor/remote", "translate/openai", "translate/request", "internal/..."}},
	{"api", []string{"web", "api/...", "node/...", "supervisor", "translate/...", "internal/..."}},
	{"api/manage", []string{"api/native", "api/text", "api/endpoint", "node/...", "warm", "mcploop/...", "catalog/...", "store", "supervisor", "supervisor/process", "supervisor/schedule", "translate/...", "internal/..."}},
	{"api/anthropic", dialect},
	{"api/llama", append([]string{"api/openai"}, dialect...)},
	{"api/native", dialect},
	{"api/ollama", dialect},
	{"api/openai", dialect},
	{"api/responses", dialect},
	{"api/text", []string{"api/endpoint", "node/...", "mcploop/...", "catalog", "store", "supervisor", "supervisor/process", "supervisor/remote", "supervisor/schedule", "translate/...", "internal/..."}},
	{"api/endpoint", []string{"node/...", "catalog/...", "store", "supervisor", "supervisor/schedule", "translate", "translate/jsonbody", "internal/..."}},
	{"web", nil},
	{"node", []string{"node/...", "warm", "mcploop/...", "catalog/...", "store", "supervisor/...", "translate/...", "internal/..."}},
	{"node/cluster", []string{"node/access", "node/remotes", "store", "supervisor/remote"}},
	{"node/remotes", []string{"catalog", "supervisor", "supervisor/remote", "supervisor/schedule", "translate/..."}},
	{"node/suspects", nil},
	{"node/runs", []string{"node/access", "store", "internal/..."}},
	{"node/access", []string{"node/record", "catalog/...", "store", "translate", "internal/..."}},
	{"node/record", []string{"catalog/...", "store", "supervisor", "translate", "internal/..."}},
	{"mcploop/servers", []string{"mcploop", "internal/..."}},
	{"mcploop", []string{"translate/...", "internal/..."}},
	{"warm/warmtest", []string{"warm", "internal/..."}},
	{"warm", []string{"internal/..."}},
	{"supervisor/llamaserver", []string{"supervisor/process", "supervisor/schedule", "supervisor/runtimes", "catalog", "internal/..."}},
	{"supervisor/mlxlm", []string{"supervisor/process", "supervisor/schedule", "supervisor/runtimes", "catalog", "internal/..."}},
	{"supervisor/remote", []string{"supervisor", "supervisor/schedule", "catalog", "internal/..."}},
	{"supervisor/runtimes", []string{"supervisor/runtimes/venv", "internal/..."}},
	{"supervisor/runtimes/venv", []string{"internal/..."}},
	{"supervisor", []string{"supervisor/process", "supervisor/schedule", "catalog", "warm", "internal/..."}},
	{"supervisor/process", []string{"supervisor/schedule", "catalog", "warm", "internal/..."}},
	{"supervisor/schedule", []string{"catalog/model", "internal/prefix"}},
	{"store", []string{"translate", "internal/..."}},
	{"catalog/fetch", []string{"catalog/hub", "catalog", "internal/..."}},
	{"catalog/hub", []string{"catalog", "internal/..."}},
	{"catalog", []string{"catalog/mlx", "catalog/chattemplate", "catalog/model", "internal/..."}},
	{"catalog/mlx", []string{"catalog/chattemplate", "catalog/model", "internal/boundedfile"}},
	{"catalog/chattemplate", []string{"catalog/model"}},
	{"catalog/model", nil},
	{"translate/llamaserver", []string{"internal/prefix", "translate/wire", "translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/mlxlm", []string{"translate/openaistream", "translate/wire", "translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/remote", []string{"internal/prefix", "translate/openaistream", "translate/wire", "translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/openaistream", []string{"translate/jsonbody", "translate"}},
	{"translate/openai", []string{"translate/wire", "translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/llama", []string{"translate/wire", "translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/anthropic", []string{"translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/native", []string{"translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/ollama", []string{"translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/responses", []string{"translate/openai", "translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/traits", []string{"translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/wire", []string{"internal/prefix", "translate/request", "translate/schema", "translate/jsonbody", "translate"}},
	{"translate/request", []string{"translate/schema", "translate/jsonbody", "translate", "internal/picture", "internal/audio"}},
	{"translate/schema", []string{"translate/jsonbody", "translate"}},
	{"translate/jsonbody", []string{"translate"}},
	{"translate", nil},
	{"internal/testing/testkit", []string{"translate/...", "internal/..."}},
	{"internal/backup", []string{"internal/home", "internal/atomicfile"}},
	{"internal/migration", []string{"catalog", "internal/filename", "internal/boundedfile"}},
	{"internal/sandbox", []string{"internal/entry"}},
	{"internal/service", []string{"internal/atomicfile"}},
	{"internal/client", []string{"internal/resource"}},
	{"internal/lineedit", []string{"internal/atomicfile"}},
	{"internal/logs", []string{"internal/ring"}},
	{"internal/testing/echoengine", []string{"supervisor/process", "supervisor/schedule", "catalog", "translate/wire", "translate/request", "translate/schema", "translate/jsonbody", "translate", "internal/engine"}},
	{"internal/testing/fakehub", []string{"internal/testing/closedport"}},
	{"internal/testing/fakeengine", []string{"internal/testing/fakekit"}},
	{"internal/testing/fakemlx", []string{"internal/testing/fakekit"}},
	{"internal/testing/fakemlx/program", []string{"internal/testing/fakemlx"}},
	{"internal/...", nil},
	{"tools/...", []string{"internal/..."}},
}

// dialect is what the packages of dialects may import: not each other.
var dialect = []string{"api/text", "api/endpoint", "node/...", "mcploop/...", "catalog/...", "store", "supervisor", "supervisor/schedule", "translate/...", "internal/..."}

// caddyOnly are modules that only the Caddy modules may depend on, with the packages below them.
var caddyOnly = []string{"github.com/caddyserver/caddy/v2", "go.uber.org/zap", "github.com/spf13/cobra"}

// impure are packages of the standard library that translate must not import, since it does no I/O.
var impure = []string{"os", "net", "os/exec", "log/slog"}

// pure are the packages outside the module that supervisor/schedule and what it imports may import: nothing can be read, sent or started
// with them.
var pure = []string{
	"bytes", "cmp", "encoding/base64", "encoding/binary", "fmt", "maps", "math", "slices", "sort", "strconv", "strings", "time",
	"github.com/dustin/go-humanize", "github.com/zeebo/xxh3",
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// TestLayout proves the arrows of docs/architecture.md with what `go list -deps` says of each package.
func TestLayout(t *testing.T) {
	t.Parallel()
	all := list(t)
	if len(all) < 20 {
		t.Fatalf("only %d packages were listed", len(all))
	}
	for _, p := range all {
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		i := slices.IndexFunc(mayImport, func(r row) bool { return matches(r.pkg, name) })
		if i < 0 {
			t.Errorf("%s has no place in the layout: add it to this test and to docs/architecture.md", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			rest, ours := strings.CutPrefix(imported, module+"/")
			if ours && !slices.ContainsFunc(mayImport[i].imports, func(pattern string) bool { return matches(pattern, rest) }) {
				t.Errorf("%s imports %s, which is not below it", p.ImportPath, imported)
			}
			if ours && matches("internal/testing/...", rest) && !isForTests(name) {
				t.Errorf("%s imports %s, which is for tests alone", p.ImportPath, imported)
			}
			if matches("translate/...", name) && slices.Contains(impure, imported) {
				t.Errorf("%s imports %s, but translate does no I/O", p.ImportPath, imported)
			}
			isScheduler := slices.Contains([]string{"supervisor/schedule", "catalog/model", "internal/prefix"}, name)
			if isScheduler && !ours && !slices.Contains(pure, imported) {
				t.Errorf("%s imports %s, but the scheduler does no I/O", p.ImportPath, imported)
			}
		}
		if name == "" || matches("caddymodule/...", name) || name == "cmd/lmcaddy" {
			continue
		}
		for _, dep := range p.Deps {
			for _, banned := range caddyOnly {
				if dep == banned || strings.HasPrefix(dep, banned+"/") {
					t.Errorf("%s depends on %s, which only caddymodule may", p.ImportPath, dep)
				}
			}
		}
	}
}

// isForTests reports whether a package isn't part of the program.
func isForTests(name string) bool {
	return matches("internal/testing/...", name) || matches("tools/...", name) || strings.HasSuffix(name, "test")
}

func matches(pattern, name string) bool {
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == folder || strings.HasPrefix(name, folder+"/")
	}
	return name == pattern
}

// list returns the packages of the module. Packages for tests and tools count as well; tests don't.
func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-tags", "nobadger,nomysql,nopgx", "-json=ImportPath,Imports,Deps", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
