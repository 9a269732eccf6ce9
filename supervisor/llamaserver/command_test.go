package llamaserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Parts of the help of builds of different ages.
const (
	newHelp = `----- common params -----

-fa,   --flash-attn [on|off|auto]       set Flash Attention use ('on', 'off', or 'auto', default: 'auto')
                                        (env: LLAMA_ARG_FLASH_ATTN)
-lv,   --verbosity, --log-verbosity N   Set the verbosity threshold. Values:
                                         - 3: info
                                         - 4: trace (more info)
                                        (default: 3)
--offline                               Offline mode
-cram, --cache-ram N                    set the maximum cache size in MiB
-ctxcp, --ctx-checkpoints, --swa-checkpoints N
                                        max number of context checkpoints to create per slot
--ui, --webui, --no-ui, --no-webui      whether to enable the Web UI (default: enabled)
--spec-type none,draft-simple,draft-eagle3
                                        comma-separated list of types of speculative decoding to use
--draft, --draft-n, --draft-max N       the argument has been removed. use --spec-draft-n-max
`
	oldHelp = `-fa,   --flash-attn                     enable Flash Attention (default: disabled)
-lv,   --verbosity, --log-verbosity N   Set the verbosity threshold. Messages with a higher verbosity will be
                                        ignored.
--no-webui                              Disable the Web UI (default: enabled)
-md,   --model-draft FNAME              draft model for speculative decoding (default: unused)
`
)

func specOf(key string, parallel int) *schedule.Spec {
	return &schedule.Spec{Engine: "llama_server", Model: catalog.Model{Key: key, Path: "/models/" + key + ".gguf"}, ContextLength: 512, Parallel: parallel, Unconfined: true}
}

func TestFlagsOf(t *testing.T) {
	t.Parallel()
	flags := flagsOf(newHelp)
	for flag, want := range map[string]string{
		"-fa":               "[on|off|auto]       set Flash Attention use ('on', 'off', or 'auto', default: 'auto') (env: LLAMA_ARG_FLASH_ATTN)",
		"--log-verbosity":   "N   Set the verbosity threshold. Values: - 3: info - 4: trace (more info) (default: 3)",
		"--swa-checkpoints": "N max number of context checkpoints to create per slot",
		"--no-ui":           "whether to enable the Web UI (default: enabled)",
	} {
		if got := flags[flag]; got != want {
			t.Errorf("%s: %q, want %q", flag, got, want)
		}
	}
	for _, flag := range []string{"--draft", "--draft-max", "common", "3:"} {
		if help, ok := flags[flag]; ok {
			t.Errorf("%s is no flag, but %q", flag, help)
		}
	}
	if got := flagsOf("rubbish\n\n\xff -x\n"); len(got) != 0 {
		t.Errorf("flags in rubbish: %v", got)
	}
}

func TestDevicesOf(t *testing.T) {
	t.Parallel()
	list := "Available devices:\n  CUDA0: NVIDIA GeForce RTX 3090 (24135 MiB, 23880 MiB free)\n  MTL0: Apple M2 (21845 MiB, 21845 MiB free)\n  Bad0: x (y MiB, 1 MiB free)\n"
	want := []process.Device{
		{Name: "CUDA0", Title: "NVIDIA GeForce RTX 3090", Memory: 24135 << 20, Free: 23880 << 20, Context: contextBytes},
		{Name: "MTL0", Title: "Apple M2", Memory: 21845 << 20, Free: 21845 << 20, Unified: true},
	}
	if diff := cmp.Diff(want, new(Process).Devices(list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProcess_Command(t *testing.T) {
	t.Parallel()
	chat := func(change func(*schedule.Spec)) *schedule.Spec {
		spec := specOf("m", 2)
		spec.Model.Type, spec.Model.Architecture = catalog.TypeLLM, "llama"
		change(spec)
		return spec
	}
	embedding := func(isReranker bool) *schedule.Spec {
		spec := specOf("e", 1)
		spec.Model.Type, spec.Model.Reranker, spec.Model.Pooling = catalog.TypeEmbedding, isReranker, catalog.PoolingCLS
		if isReranker {
			spec.Model.Pooling = catalog.PoolingRank
		}
		spec.BatchSize = 64 // of no use to it
		return spec
	}
	draft := catalog.Model{Key: "d", Path: "/models/d.gguf"}
	everything := chat(func(s *schedule.Spec) {
		s.BatchSize, s.FlashAttention, s.OffloadKV, s.Experts, s.PromptCache, s.Checkpoints = 1024, schedule.On, schedule.Off, 4, 100<<20+1, 3
		s.Draft, s.Model.Projector, s.Args = &draft, "/models/mmproj.gguf", []string{"--threads", "1"}
	})
	head := chat(func(s *schedule.Spec) { s.Draft = &catalog.Model{Key: "h", Path: "/models/h.gguf", Drafting: "mtp"} })
	const begin = "-m /models/m.gguf --host 127.0.0.1 --port 7 -a m -c 1024 -np 2 "
	for name, c := range map[string]struct {
		help string
		spec *schedule.Spec
		want string
	}{
		"of a new build": {newHelp, chat(func(*schedule.Spec) {}), begin + "--no-ui --offline -lv 4 --cache-ram 0"},
		"on a socket":    {oldHelp, chat(func(*schedule.Spec) {}), "-m /models/m.gguf --host /run/s.sock -a m -c 1024 -np 2 --no-webui"},
		"of an old one":  {oldHelp, chat(func(*schedule.Spec) {}), begin + "--no-webui"},
		"everything, new": {newHelp, everything, begin + "--no-ui --offline -lv 4 --cache-ram 100 --ctx-checkpoints 3 --mmproj /models/mmproj.gguf " +
			"-b 1024 -ub 512 -fa on --no-kv-offload --override-kv llama.expert_used_count=int:4 -md /models/d.gguf --spec-type draft-simple --threads 1"},
		"everything, old": {oldHelp, everything, begin + "--no-webui --mmproj /models/mmproj.gguf " +
			"-b 1024 -ub 512 -fa --no-kv-offload --override-kv llama.expert_used_count=int:4 -md /models/d.gguf --threads 1"},
		"a drafter of its own kind":  {newHelp, head, begin + "--no-ui --offline -lv 4 --cache-ram 0 -md /models/h.gguf --spec-type draft-mtp"},
		"drafting for itself":        {newHelp, chat(func(s *schedule.Spec) { s.SelfDraft = "ngram-mod" }), begin + "--no-ui --offline -lv 4 --cache-ram 0 --spec-type ngram-mod"},
		"no flash attention, new":    {newHelp, chat(func(s *schedule.Spec) { s.FlashAttention = schedule.Off }), begin + "--no-ui --offline -lv 4 --cache-ram 0 -fa off"},
		"no flash attention, old":    {oldHelp, chat(func(s *schedule.Spec) { s.FlashAttention = schedule.Off }), begin + "--no-webui"},
		"a small batch":              {oldHelp, chat(func(s *schedule.Spec) { s.BatchSize = 64 }), begin + "--no-webui -b 64 -ub 64"},
		"on the GPU is the default":  {oldHelp, chat(func(s *schedule.Spec) { s.OffloadKV = schedule.On }), begin + "--no-webui"},
		"embeddings":                 {"", embedding(false), "-m /models/e.gguf --host 127.0.0.1 --port 7 -a e -c 512 -np 1 --embeddings -b 512 -ub 512 --pooling cls"},
		"a reranker":                 {"", embedding(true), "-m /models/e.gguf --host 127.0.0.1 --port 7 -a e -c 512 -np 1 --reranking -b 512 -ub 512 --pooling rank"},
		"a build that tells nothing": {"", chat(func(*schedule.Spec) {}), strings.TrimSuffix(begin, " ")},
	} {
		launch := process.Launch{Spec: c.spec, Instance: c.spec.Model.Key, Port: 7, APIKey: "secret"}
		if name == "on a socket" {
			launch.Socket = "/run/s.sock"
		}
		cmd := (&Process{}).Command(launch, process.Build{Path: "/bin/llama-server", Flags: flagsOf(c.help)})
		if got := strings.Join(cmd.Args, " "); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, c.want)
		}
		if env := strings.Join(cmd.Env, " "); cmd.Path != "/bin/llama-server" || !strings.Contains(env, "LLAMA_API_KEY=secret") {
			t.Errorf("%s: path %s, environment %s", name, cmd.Path, env)
		}
	}
}

func TestProcess_Command_MachinesThatTakePart(t *testing.T) {
	t.Parallel()
	spec := specOf("m", 1)
	spec.Args = []string{"--threads", "1", "--rpc", "10.0.0.7:50052,[fd00::1]:50053,nonsense"}
	cmd := (&Process{}).Command(process.Launch{Spec: spec}, process.Build{})
	if diff := cmp.Diff([]int{50052, 50053}, cmd.Needs.Connect); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
