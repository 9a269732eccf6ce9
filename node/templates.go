package node

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/traits"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// templatesVersion must be incremented when more is learnt of a template, or something else.
const templatesVersion = 3

// learnWithin bounds how long an engine is asked about its template, for which the model may have to give a short answer.
const learnWithin = time.Minute

// templates has what is known of the chat templates that were rendered, over restarts.
type templates struct {
	file  string
	read  sync.Once
	mu    sync.Mutex                        // held while known is replaced
	known atomic.Pointer[map[string]learnt] // by templateKey; the map never changes
}

// learnt is what a version of an engine makes of a template.
type learnt struct {
	Engine   string            `json:"engine"`
	Template *request.Template `json:"template"` // must not be modified
}

// templatesFile is the file's content. One that can't be read, or of another version, is empty.
type templatesFile struct {
	Version   int               `json:"version"`
	Templates map[string]learnt `json:"templates"`
}

// now returns what is known. The file is read when it is called for the first time.
func (t *templates) now() map[string]learnt {
	t.read.Do(func() {
		var content templatesFile
		text, err := os.ReadFile(t.file)
		if err != nil || json.Unmarshal(text, &content) != nil || content.Version != templatesVersion {
			content.Templates = nil
		}
		maps.DeleteFunc(content.Templates, func(_ string, of learnt) bool { return of.Template == nil })
		t.known.Store(&content.Templates)
	})
	return *t.known.Load()
}

// set notes what was learnt. A template that is as it was known stays the same one.
func (t *templates) set(key string, to learnt) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]learnt{}
	maps.Copy(all, t.now())
	if known := all[key].Template; reflect.DeepEqual(known, to.Template) {
		to.Template = known
	}
	all[key] = to
	t.known.Store(&all)
	err := os.MkdirAll(filepath.Dir(t.file), 0o700)
	if err == nil {
		err = atomicfile.WriteFile(t.file, 0o600, atomicfile.JSON(templatesFile{templatesVersion, all}))
	}
	if err != nil {
		return fmt.Errorf("writing what is known of chat templates: %w", err)
	}
	return nil
}

// templateKey names what is known of a model's template on an engine with the operator's arguments.
func templateKey(e *engine, m *catalog.Model, args []string) string {
	key := e.Name + " " + m.Template
	if len(args) == 0 {
		return key
	}
	if by := e.fixed(args).Template; by != "" {
		sum := sha256.Sum256([]byte(by))
		key += " " + hex.EncodeToString(sum[:12])
	}
	return key
}

// templateOf returns what is known of a model's template, as loaded with the operator's arguments; nil: nothing is.
func (en *Engines) templateOf(m *catalog.Model, args []string) *request.Template {
	if m.Type != catalog.TypeLLM {
		return nil
	}
	return en.templates.now()[templateKey(en.of(m), m, args)].Template
}

// Reasoning returns the choice of efforts that a model offers: as its template has shown, or else as its file looks.
func (en *Engines) Reasoning(m *catalog.Model) catalog.Reasoning {
	if m.IsRemote {
		return m.Reasoning
	}
	t := en.templateOf(m, en.argumentsOf(m))
	if t == nil {
		return m.Reasoning
	}
	shown := catalog.Reasoning{Default: t.Default}
	if len(t.Thinking) > 0 {
		shown.Options = t.Reasoning()
	}
	return shown
}

// renders reports whether it can be found out what the template of a model makes of requests, where the operator adds arguments.
func (e *engine) renders(m *catalog.Model, args []string) bool {
	if m.Type != catalog.TypeLLM {
		return false
	}
	if _, ok := e.Wire.(wire.Renderer); ok {
		return true
	}
	_, ok := e.process.(process.Renderer)
	return ok && m.Template != "" && e.fixed(args).Template == ""
}

// learn finds out what the template of a model makes of requests, beside the launch of its engine or once the engine answers. It returns
// what is done then; nil: that is known, or can't be found out. Another version of the engine may make something else of it.
func (en *Engines) learn(processCtx context.Context, spec *schedule.Spec, b process.Build) func(process.Ask) {
	e := en.ofSpec(spec)
	if !e.renders(&spec.Model, spec.Args) || en.templates.now()[templateKey(e, &spec.Model, spec.Args)].Engine == b.Version {
		return nil
	}
	if renderer, ok := e.Wire.(wire.Renderer); ok {
		return func(endlessly process.Ask) {
			ask := func(ctx context.Context, path string, body [][]byte) (int, []byte, error) {
				ctx, cancel := context.WithTimeout(ctx, cmp.Or(en.settings.Load().StallTimeout, learnWithin))
				defer cancel()
				return endlessly(ctx, path, body)
			}
			en.learnFrom(processCtx, spec, b, func(ctx context.Context, learn learnBy) error {
				var dictate traits.Dictate
				if by, ok := renderer.(wire.Dictator); ok {
					dictate = func(c traits.Chat, text string) (string, error) {
						u := by.Dictate(c.Messages, c.Arguments, text)
						status, answer, err := ask(ctx, u.Path, u.Body)
						if err != nil {
							return "", err
						}
						return by.Dictated(status, answer), nil
					}
				}
				return learn(func(c traits.Chat) (string, bool, error) { return render(ctx, renderer, ask, c) }, dictate)
			})
		}
	}
	learning := make(chan struct{})
	en.background.Go(func() {
		defer close(learning)
		en.learnFrom(processCtx, spec, b, func(ctx context.Context, learn learnBy) error {
			return e.process.(process.Renderer).Rendering(ctx, spec, b, func(r process.Render) error {
				return learn(func(c traits.Chat) (string, bool, error) { return r(c.Messages, c.Tools, c.Arguments) }, nil)
			})
		})
	})
	return func(process.Ask) { <-learning }
}

type learnBy func(traits.Render, traits.Dictate) error

// learnFrom learns from what by calls its argument with.
func (en *Engines) learnFrom(processCtx context.Context, spec *schedule.Spec, b process.Build, by func(context.Context, learnBy) error) {
	ctx, cancel := context.WithTimeout(processCtx, learnWithin)
	defer cancel()
	log := en.log.With("part", "templates", "model", spec.Model.Key)
	begun := time.Now()
	var found *request.Template
	err := by(ctx, func(r traits.Render, d traits.Dictate) (err error) {
		found, err = traits.Learn(r, d)
		return err
	})
	if err == nil {
		err = en.templates.set(templateKey(en.ofSpec(spec), &spec.Model, spec.Args), learnt{b.Version, found})
	}
	switch {
	case processCtx.Err() != nil: // it was told to stop meanwhile
	case err != nil:
		log.Warn("what the model's chat template makes of requests could not be found out: requests are sent as they come", "error", err)
	default:
		log.Debug("the model's chat template was tried out",
			"took", time.Since(begun), "reasoning", found.Reasoning(), "default", found.Default)
	}
}

func render(ctx context.Context, by wire.Renderer, ask process.Ask, c traits.Chat) (prompt string, ok bool, _ error) {
	u := by.Render(c.Messages, c.Tools, c.Arguments)
	status, answer, err := ask(ctx, u.Path, u.Body)
	if err != nil {
		return "", false, err
	}
	prompt, ok, bad := by.Rendered(status, answer)
	if bad != nil {
		return "", false, bad
	}
	return prompt, ok, nil
}
