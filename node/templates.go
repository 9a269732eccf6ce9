package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/traits"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// templatesVersion must be incremented when more is learnt of a template, or something else.
const templatesVersion = 1

// learnWithin bounds how long an engine is asked about its template, which takes some milliseconds.
const learnWithin = 20 * time.Second

// templates has what is known of the chat templates that were rendered, over restarts.
type templates struct {
	file string

	mu      sync.Mutex
	all     map[string]learnt
	wasRead bool
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

// read reads the file when it is called for the first time. It needs the lock.
func (t *templates) read() {
	if t.wasRead {
		return
	}
	t.wasRead, t.all = true, map[string]learnt{}
	var content templatesFile
	text, err := os.ReadFile(t.file)
	if err != nil || json.Unmarshal(text, &content) != nil || content.Version != templatesVersion {
		return
	}
	for key, of := range content.Templates {
		if of.Template != nil {
			t.all[key] = of
		}
	}
}

// get returns what is known by a key; the zero value: nothing is.
func (t *templates) get(key string) learnt {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read()
	return t.all[key]
}

// set notes what was learnt. A template that is as it was known stays the same one.
func (t *templates) set(key string, to learnt) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read()
	if known := t.all[key].Template; reflect.DeepEqual(known, to.Template) {
		to.Template = known
	}
	t.all[key] = to
	err := os.MkdirAll(filepath.Dir(t.file), 0o700)
	if err == nil {
		err = atomicfile.WriteFile(t.file, 0o600, func(w io.Writer) error {
			return json.NewEncoder(w).Encode(templatesFile{templatesVersion, t.all})
		})
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

// templateOf returns what is known of the template of a model on this machine that is loaded with the operator's arguments; nil: nothing is.
func (n *Node) templateOf(m *catalog.Model, args []string) *request.Template {
	if m.Type != catalog.TypeLLM {
		return nil
	}
	return n.templates.get(templateKey(n.engineOf(m), m, args)).Template
}

// Reasoning returns the choice of efforts that a model offers: as its template has shown, or else as its file looks.
func (n *Node) Reasoning(m *catalog.Model) catalog.Reasoning {
	if m.IsRemote {
		return m.Reasoning
	}
	if t := n.templateOf(m, n.argumentsOf(m)); t != nil {
		shown := catalog.Reasoning{Default: t.Default}
		if len(t.Thinking) > 0 {
			shown.Options = t.Reasoning()
		}
		return shown
	}
	return m.Reasoning
}

// learn returns what finds out what the template of a model that has just been loaded makes of requests; nil: that is known, or can't be
// found out. Another version of the engine may make something else of it.
func (n *Node) learn(spec *supervisor.Spec, b supervisor.Build) func(context.Context, supervisor.Ask) {
	e := n.engineOfSpec(spec)
	renderer, ok := e.Wire.(wire.Renderer)
	key := templateKey(e, &spec.Model, spec.Args)
	if !ok || spec.Model.Type != catalog.TypeLLM || n.templates.get(key).Engine == b.Version {
		return nil
	}
	log := n.log.With("part", "templates", "model", spec.Model.Key)
	return func(ctx context.Context, ask supervisor.Ask) {
		ctx, cancel := context.WithTimeout(ctx, learnWithin)
		defer cancel()
		begun := time.Now()
		found, err := traits.Learn(func(c traits.Chat) (string, bool, error) { return render(ctx, renderer, ask, c) })
		if err == nil {
			err = n.templates.set(key, learnt{b.Version, found})
		}
		if err != nil {
			log.Warn("what the model's chat template makes of requests could not be found out: requests are sent as they come", "error", err)
			return
		}
		log.Debug("the model's chat template was tried out", "took", time.Since(begun), "reasoning", found.Reasoning(), "default", found.Default)
	}
}

// render has an engine render a chat.
func render(ctx context.Context, by wire.Renderer, ask supervisor.Ask, c traits.Chat) (prompt string, ok bool, _ error) {
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
