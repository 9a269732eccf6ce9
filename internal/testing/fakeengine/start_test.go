package fakeengine_test

import (
	"bytes"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func TestProbe_VersionAndHelpFollowTheScript(t *testing.T) {
	t.Parallel()
	e := fakeengine.Install(t, nil)
	stdout, stderr := probe(t, e, "--version")
	if !strings.HasPrefix(stderr, "version: 0.7.0 (build 11669, commit fake)\nbuilt with ") || stdout != "" {
		t.Errorf("--version printed %q, and on standard output %q", stderr, stdout)
	}
	help, _ := probe(t, e, "--help")
	for _, want := range []string{
		"----- common params -----\n\n-h,    --help, --usage                  print usage and exit\n",
		"\n-c,    --ctx-size N                     size of the prompt context (default: 0, 0 = loaded from model)\n" +
			"                                        (env: LLAMA_ARG_CTX_SIZE)\n",
		"\n-ngl,  --gpu-layers, --n-gpu-layers N   max. number of layers to store in VRAM, either an exact number,\n",
		"\n-kvo,  --kv-offload, -nkvo, --no-kv-offload\n                                        whether to enable KV cache",
		"--load-mode MODE", "--spec-type none,draft-simple", "--sse-ping-interval N", "--no-ui", "-mm,   --mmproj FILE",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("--help lacks %q", want)
		}
	}
	e.Set(func(s *fakeengine.Script) {
		s.Version = "4242 (abcdef)"
		s.RemoveFlags = []string{"-lm", "--load-mode", "-h"}
		s.AddFlags = []fakeengine.Flag{{Names: []string{"--mlock"}, Help: "force system to keep model in RAM"}}
	})
	if _, stderr := probe(t, e, "--version"); !strings.HasPrefix(stderr, "version: 4242 (abcdef)\n") {
		t.Errorf("--version printed %q", stderr)
	}
	help, _ = probe(t, e, "--help")
	if strings.Contains(help, "--load-mode") || !strings.Contains(help, "\n--mlock                                 force system") {
		t.Errorf("--help doesn't follow the script:\n%s", help)
	}
	if n := count(e, fakeengine.Probe); n != 4 {
		t.Errorf("%d probes in the journal, want 4", n)
	}
}

func TestStart_ArgumentsThatTheRealParserRefuses(t *testing.T) {
	t.Parallel()
	e := fakeengine.Install(t, &fakeengine.Script{
		AddFlags: []fakeengine.Flag{{Names: []string{"--turbo"}, Hint: "N", Help: "goes faster"}}, RemoveFlags: []string{"--jinja"},
	})
	for _, c := range []struct {
		args, env []string
		want      string
	}{
		{[]string{"--nonsense"}, nil, "error: invalid argument: --nonsense\n"},
		{[]string{"--jinja"}, nil, "error: invalid argument: --jinja\n"},
		{[]string{"--turbo", "9", "--port=1"}, nil, "error: invalid argument: --port=1\n"},
		{[]string{"--ctx_size", "lots"}, nil, "error while handling argument \"--ctx-size\": stoi\n\nusage:\n-c,    --ctx-size N "},
		{[]string{"-c"}, nil, "error while handling argument \"-c\": expected value for argument\n"},
		{[]string{"--draft-max", "9"}, nil, "error while handling argument \"--draft-max\": the argument has been removed. use --spec-draft-n-max"},
		{nil, []string{"LLAMA_ARG_DRAFT_MAX=9"}, "error while handling environment variable \"LLAMA_ARG_DRAFT_MAX\": the argument has been removed"},
	} {
		r := launch(t, e, c.env, c.args...)
		r.wantExit("exit status 1")
		if got := r.stderr.String(); !strings.HasPrefix(got, c.want) {
			t.Errorf("%v printed %q, want %q", c.args, got, c.want)
		}
		if exit := r.await(fakeengine.Exit); exit.Code != 1 {
			t.Errorf("the journal says %v", exit)
		}
	}
}

func TestStart_TellsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	e := fakeengine.Install(t, nil)
	args := []string{"-m", "/m.gguf", "--port", "0", "--threads", "1", "--override-kv", "a.b=int:1", "--no-ui"}
	r := launch(t, e, []string{"LLAMA_API_KEY=secret", "GGML_NO_BACKTRACE=1", "HOME=/nowhere"}, args...)
	got := r.await(fakeengine.Started)
	if diff := cmp.Diff(args, got.Argv); diff != "" {
		t.Errorf("argv: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{"LLAMA_API_KEY": "secret", "GGML_NO_BACKTRACE": "1"}, got.Env); diff != "" {
		t.Errorf("env: %s", diff)
	}
	if !slices.Contains(got.EnvNames, "HOME") || got.Port == 0 || got.Dir == "" || got.Start != 1 {
		t.Errorf("started: %+v", got)
	}
}

func TestStart_PortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	pretended := &fakeengine.Script{PortTaken: true}
	for _, r := range []*engine{
		launch(t, fakeengine.Install(t, nil), childMode, "-m", "/m.gguf", "--port", strconv.Itoa(port)),
		launch(t, fakeengine.Install(t, pretended), childMode, "-m", "/m.gguf", "--port", "0"),
	} {
		r.wantExit("exit status 1")
		for _, want := range []string{
			" E srv         start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: ",
			" E srv  llama_server: exiting due to HTTP server error\n",
		} {
			if !strings.Contains(r.stderr.String(), want) {
				t.Errorf("standard error lacks %q:\n%s", want, r.stderr.String())
			}
		}
		if r.stdout.String() != "" {
			t.Errorf("standard output: %q", r.stdout.String())
		}
	}
}

func TestLoad_ChildProtocolTellsProgressAndReadiness(t *testing.T) {
	t.Parallel()
	e := fakeengine.Install(t, &fakeengine.Script{Load: fakeengine.Load{Steps: 4, Gate: "load"}})
	r := start(t, e, childMode, "-md", "/draft.gguf", "--spec-type", "draft-simple", "-c", "1000", "-np", "2")
	e.Wait(t, fakeengine.At("load"))
	want := `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`
	for _, path := range []string{"/health", "/v1/models", "/props", "/nowhere", chatPath} {
		if status, body := r.ask(path, ""); status != 503 || body != want {
			t.Errorf("%s while loading: %d %s", path, status, body)
		}
	}
	e.Release("load")
	r.await(fakeengine.Ready)
	var got []string
	for line := range strings.Lines(r.stdout.until(t, `"state":"ready"`)) {
		line, ok := strings.CutPrefix(line, "cmd_child_to_router:state:")
		if !ok {
			t.Fatalf("a line without prefix: %q", line)
		}
		got = append(got, gjson.Get(line, "state").Str+" "+gjson.Get(line, "payload.current").Str+" "+gjson.Get(line, "payload.value").Raw)
	}
	lines := []string{
		"loading text_model 0.0", "loading text_model 0.25", "loading text_model 0.5", "loading text_model 0.75", "loading text_model 1.0",
		"loading spec_model 0.0", "loading spec_model 0.25", "loading spec_model 0.5", "loading spec_model 0.75", "loading spec_model 1.0",
		"ready  ",
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Errorf("state lines: %s", diff)
	}
	if status, body := r.ask("/health", ""); status != 200 || body != `{"status":"ok"}` {
		t.Errorf("/health: %d %s", status, body)
	}
	_, props := r.ask("/props", "")
	if n, context := gjson.Get(props, "total_slots").Int(), gjson.Get(props, "default_generation_settings.n_ctx").Int(); n != 2 || context != 512 {
		t.Errorf("-c 1000 -np 2 gives %d slots of %d, want 2 of 512", n, context)
	}
	_, models := r.ask("/v1/models", "")
	if id := gjson.Get(models, "data.0.id").Str; id != "tiny" {
		t.Errorf("the model's id is %q", id)
	}
	r.stderr.until(t, " I srv  llama_server: listening on http://127.0.0.1:"+strconv.Itoa(r.started.Port)+"\n")
}

func TestLoad_OldBuildKnowsNoChildProtocol(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{NoChildProtocol: true}, childMode)
	if err := r.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _ := r.ask(chatPath, chatBody("")); status != 200 || r.stdout.String() != "" {
		t.Errorf("status %d, standard output %q", status, r.stdout.String())
	}
}

func TestLoad_Failures(t *testing.T) {
	t.Parallel()
	failing := func(d *fakeengine.Death) fakeengine.Script { return fakeengine.Script{Load: fakeengine.Load{Fail: d}} }
	e := fakeengine.Install(t, &fakeengine.Script{Cases: []fakeengine.Case{
		{Argv: "/corrupt.gguf", Script: failing(fakeengine.LoadError("unknown model architecture: 'foobar'"))},
		{Argv: "/killed.gguf", Script: failing(&fakeengine.Death{})},
		{Argv: "/healed.gguf", Start: 3, Script: failing(&fakeengine.Death{Code: 7, Lines: []string{"third time unlucky"}})},
	}})
	corrupt := launch(t, e, childMode, "-m", "/corrupt.gguf", "--port", "0")
	corrupt.wantExit("exit status 1")
	if want := " E llama_model_load: error loading model: unknown model architecture: 'foobar'\n"; !strings.Contains(corrupt.stderr.String(), want) {
		t.Errorf("standard error lacks %q:\n%s", want, corrupt.stderr.String())
	}
	launch(t, e, childMode, "-m", "/killed.gguf", "--port", "0").wantExit(killed)
	third := launch(t, e, childMode, "-m", "/healed.gguf", "--port", "0")
	third.wantExit("exit status 7")
	if !strings.Contains(third.stderr.String(), "third time unlucky\n") {
		t.Errorf("standard error:\n%s", third.stderr.String())
	}
	fourth := launch(t, e, childMode, "-m", "/healed.gguf", "--port", "0")
	if got := fourth.await(fakeengine.Started); got.Start != 4 {
		t.Errorf("the fourth start is the %dth", got.Start)
	}
	fourth.await(fakeengine.Ready)
}

func TestStart_NoiseIsWrittenWhole(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Noise: []fakeengine.Noise{
		{Stdout: true, Text: "half a line", Bytes: 1},
		{Bytes: 300_000, LineBytes: 150_000},
		{When: fakeengine.AtRequest, Text: "asked", Bytes: 1},
	}}, nil)
	r.ask(chatPath, chatBody(""))
	if got := strings.Count(r.stderr.until(t, "asked\n"), strings.Repeat("#", 149_999)+"\n"); got != 2 {
		t.Errorf("%d long lines on standard error, want 2", got)
	}
	r.stdout.until(t, "half a line\n")
}

func TestStart_NoiseAgainAndAgain(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Noise: []fakeengine.Noise{{Text: "tick\n", Every: 1}}}, nil)
	r.stderr.until(t, "tick\ntick\n")
}

func TestStart_ASilentBuildSaysNothing(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Silent: true}, childMode)
	if status, _ := r.ask(chatPath, chatBody("")); status != 200 || r.stdout.String()+r.stderr.String() != "" {
		t.Errorf("status %d, output %q and %q", status, r.stdout.String(), r.stderr.String())
	}
}

func probe(t *testing.T, e *fakeengine.Engine, flag string) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	cmd := exec.Command(e.Path, flag)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"PATH="}, &out, &err
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v", flag, err)
	}
	return out.String(), err.String()
}

func count(e *fakeengine.Engine, k fakeengine.Kind) int {
	n := 0
	for _, ev := range e.Events() {
		if ev.Kind == k {
			n++
		}
	}
	return n
}
