package e2e

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const secondInstance = harness.Model + ":2"

func TestNative_LoadMakesAnInstanceEachTimeAndUnloadEndsIt(t *testing.T) {
	t.Parallel()
	overEngines(t, loadMakesAnInstanceEachTime)
}

func loadMakesAnInstanceEachTime(t *testing.T, e engine) {
	s := e.start(t, harness.Config{})
	loaded := s.Post(harness.LoadPath, harness.Fields{"model": harness.Model, "context_length": 1000, "echo_load_config": true}).Want(t, http.StatusOK)
	for key, want := range map[string]any{
		"type": "llm", "instance_id": harness.Model, "status": "loaded", "load_config.context_length": float64(e.context),
	} {
		if diff := cmp.Diff(want, loaded.Get(key).Value()); diff != "" {
			t.Errorf("%s (-want +got):\n%s%s", key, diff, loaded.Body)
		}
	}
	if loaded.Get("load_time_seconds").Num <= 0 {
		t.Errorf("load_time_seconds: %s", loaded.Body)
	}
	second := s.Post(harness.LoadPath, harness.Fields{"model": harness.Bare}).Want(t, http.StatusOK)
	if second.Get("instance_id").Str != secondInstance || second.Get("load_config").Exists() {
		t.Errorf("the second: %s", second.Body)
	}
	wantLoaded(t, s, harness.Model, secondInstance)
	if n := len(s.Engines()); n != 2 {
		t.Errorf("%d engines run", n)
	}

	for _, id := range []string{secondInstance, harness.Model} {
		if a := s.Chat(harness.Ask(capital).With("model", id)); a.Content != paris || (id == secondInstance && a.Model != id) {
			t.Errorf("asked of %s: %q by %q", id, a.Content, a.Model)
		}
	}

	wantUnloaded(t, s, harness.Model)
	wantLoaded(t, s, secondInstance)
	wantUnloaded(t, s, secondInstance)
	wantLoaded(t, s)
	if engines := s.Engines(); len(engines) > 0 {
		t.Errorf("after the answer to unload, there run %v", engines)
	}
	reply := s.Post(harness.UnloadPath, harness.Fields{"instance_id": secondInstance}).Want(t, http.StatusNotFound)
	wantNativeError(t, reply, "model_not_found")
}

func wantUnloaded(t *testing.T, s *harness.Server, id string) {
	t.Helper()
	reply := s.Post(harness.UnloadPath, harness.Fields{"instance_id": id}).Want(t, http.StatusOK)
	if diff := cmp.Diff(map[string]any{"instance_id": id}, gjson.Parse(reply.Body).Value()); diff != "" {
		t.Errorf("the answer to unload (-want +got):\n%s", diff)
	}
}

// wantLoaded checks the loaded models in both lists.
func wantLoaded(t *testing.T, s *harness.Server, ids ...string) {
	t.Helper()
	if ids == nil {
		ids = []string{}
	}
	if diff := cmp.Diff(ids, s.IDs()); diff != "" {
		t.Errorf("GET /v1/models (-want +got):\n%s", diff)
	}
	native := []string{}
	for _, in := range s.Get("/api/v1/models").Want(t, http.StatusOK).Get("models.0.loaded_instances").Array() {
		native = append(native, in.Get("id").Str)
	}
	if diff := cmp.Diff(ids, native); diff != "" {
		t.Errorf("GET /api/v1/models (-want +got):\n%s", diff)
	}
}

func TestNative_ModelListDescribesTheModel(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	models := s.Get("/api/v1/models").Want(t, http.StatusOK).Get("models").Array()
	if len(models) != 1 {
		t.Fatalf("%d models: %v", len(models), models)
	}
	for key, want := range map[string]any{
		"key": harness.Model, "type": "llm", "publisher": "lmcaddy", "architecture": "llama", "format": "gguf",
		"quantization.name": "F16", "capabilities.vision": false, "capabilities.trained_for_tool_use": true,
		"size_bytes": float64(len(harness.ShippedModel(t))), "loaded_instances": []any{},
	} {
		if diff := cmp.Diff(want, models[0].Get(key).Value()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if models[0].Get("max_context_length").Int() < 256 || models[0].Get("display_name").Str == "" {
		t.Errorf("max_context_length and display_name: %s", models[0].Raw)
	}
}

func TestNative_LoadRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	for name, c := range map[string]struct {
		body   any
		status int
		kind   string
		code   string
	}{
		"unknown model":            {harness.Fields{"model": "nobody/nothing"}, 404, "model_not_found", "model_not_found"},
		"no model":                 {harness.Fields{}, 400, "invalid_request", "missing_required_parameter"},
		"negative context":         {harness.Fields{"model": harness.Model, "context_length": -1}, 400, "invalid_request", "invalid_value"},
		"context that is a string": {harness.Fields{"model": harness.Model, "context_length": "1000"}, 400, "invalid_request", "invalid_type"},
		"not JSON":                 {"load!", 400, "invalid_request", "invalid_json"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := s.In(t).Post(harness.LoadPath, c.body).Want(t, c.status)
			wantNativeError(t, reply, c.kind)
			if code := reply.Get("error.code").Str; code != c.code {
				t.Errorf("code %q, want %q", code, c.code)
			}
		})
	}
	if engines := s.Engines(); len(engines) > 0 {
		t.Errorf("there run %v", engines)
	}
}

func TestNative_OneModelIsFoundByItsIDEscapedOrNot(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	for _, path := range []string{"/v1/models/lmcaddy/tinychat", "/v1/models/lmcaddy%2Ftinychat", "/v1/models/tinychat"} {
		reply := s.Get(path).Want(t, http.StatusOK)
		if reply.Get("id").Str != harness.Model || reply.Get("object").Str != "model" {
			t.Errorf("%s: %s", path, reply.Body)
		}
	}
	reply := s.Get("/v1/models/nobody%2Fnothing").Want(t, http.StatusNotFound)
	wantOpenAIError(t, reply, "invalid_request_error", "model_not_found")
}

func TestNative_UnloadOfABusyInstanceWaitsForTheStreamThatRuns(t *testing.T) {
	t.Parallel()
	eachEngine(t, harness.Config{}, nativeUnloadOfABusyInstanceWaitsForTheStreamThatRuns)
}

func nativeUnloadOfABusyInstanceWaitsForTheStreamThatRuns(t *testing.T, s *harness.Server) {
	st := s.Stream(harness.Long(700))
	st.WaitContent()
	engine := s.Engine()
	engine.Pause(t)
	unloaded := s.Go(harness.UnloadPath, harness.Fields{"instance_id": harness.Model})
	for range 50 { // other requests are answered meanwhile
		s.Get("/api/v1/models").Want(t, http.StatusOK)
	}
	select {
	case reply := <-unloaded:
		t.Fatalf("unload didn't wait: %s", reply.Body)
	default:
	}
	if st.HasEnded() || !engine.Alive() {
		t.Fatalf("the stream has ended: %v, the engine lives: %v", st.HasEnded(), engine.Alive())
	}
	engine.Resume(t)
	harness.Wait(t, "the answer to unload", unloaded).Want(t, http.StatusOK)
	if engine.Alive() {
		t.Error("after the answer to unload the engine lives")
	}
	if a := st.Answer(); a.Finish != "length" {
		t.Errorf("the stream's finish_reason is %q", a.Finish)
	}
	wantLoaded(t, s)
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("loaded anew: %q", a.Content)
	}
}
